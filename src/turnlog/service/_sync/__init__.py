# Generated from src/turnlog/service/_async/__init__.py by tools/unasync.py: edit that file, then run `make generate`.
"""The service; its twin is generated."""

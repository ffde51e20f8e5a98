"""The service; its twin is generated."""

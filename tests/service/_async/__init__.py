"""Tests of the service; their twins are generated."""

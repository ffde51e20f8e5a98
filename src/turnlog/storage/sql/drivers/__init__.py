"""Drivers: connect, run a transaction, execute, translate errors. One package per engine."""

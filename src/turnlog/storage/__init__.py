"""Stores: the port, and what implements it."""

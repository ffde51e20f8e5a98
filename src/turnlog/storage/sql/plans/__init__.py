"""Plans: every operation of a store as a generator that yields statements and receives rows.

A plan has no colour and does no I/O; a driver runs it in one transaction, and again from the start when the engine
asks.
"""

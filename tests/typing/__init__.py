"""Read by the type checkers, never run."""

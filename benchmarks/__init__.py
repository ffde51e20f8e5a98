"""What turnlog costs, as ratios to SQLite by hand in the same run."""

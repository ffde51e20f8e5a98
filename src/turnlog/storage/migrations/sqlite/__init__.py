"""SQLite's schema."""

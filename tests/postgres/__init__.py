"""The PostgreSQL store, on a real server."""

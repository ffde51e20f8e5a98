"""PostgreSQL's schema."""

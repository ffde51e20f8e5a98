"""Numbered schema changes per dialect, and the full schema beside them; a test proves that they agree (R-13)."""

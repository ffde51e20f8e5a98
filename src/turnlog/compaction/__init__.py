"""Compaction: which events leave the view, and what stands for them. Decisions only; the service carries them out."""

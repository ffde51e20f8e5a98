"""Tests of the vocabulary: ``turnlog.log``, and the rules that every store shares."""

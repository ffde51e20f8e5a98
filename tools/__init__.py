"""Commands for those who work on turnlog; not part of the package."""

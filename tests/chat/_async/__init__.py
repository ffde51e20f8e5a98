"""The chat client and the session advisors, in both colours: the sync twins are generated."""

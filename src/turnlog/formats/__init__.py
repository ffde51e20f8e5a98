"""Wire formats: to and from what providers and files hold. Pure; nothing here reads a file or talks to a network."""

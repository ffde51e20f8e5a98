"""What ``turnlog chat`` is made of: a model, a session, lines that are typed, and commands among them."""

"""The shells of the chat client, written once: the sync twins are generated."""

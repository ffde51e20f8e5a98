"""Import: from files to stores, in two passes over a file that need not fit into memory."""

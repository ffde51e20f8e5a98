"""The command line. Everything here is an outer shell: it reads options, calls a store or a service, and prints."""

"""Machine that bench runs on: its paths, helper processes, temporary folders, TLS apart from its socket."""

"""The machine that bench runs on: paths, helper processes, temporary folders, TLS apart from its socket."""

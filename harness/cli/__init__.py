"""Command line of bench: arguments, exit codes, and what goes to which stream. `main` is where it begins."""

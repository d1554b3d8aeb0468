"""Command line of bench: arguments, exit codes, and what goes to which stream."""

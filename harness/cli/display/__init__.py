"""Output of commands: results to standard output, progress to a terminal, a log or a metrics port."""

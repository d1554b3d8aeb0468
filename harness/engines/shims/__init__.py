"""Programs that run in an engine's own environment, or beside it. They import nothing of the harness."""

"""Programs that run in an engine's own environment, or next to it. They import nothing of the harness."""

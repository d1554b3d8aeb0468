"""Text of a run for a terminal, and as Markdown: the first screen, tables, histories."""

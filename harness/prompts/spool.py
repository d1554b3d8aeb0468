"""The requests of a cell on disk while a run goes on: a hundred thousand prompts do not stand in memory."""

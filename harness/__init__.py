"""Multi-backend LLM serving benchmark. The rooms and the direction data flows in are in README.md."""

__version__ = "0.1.0"

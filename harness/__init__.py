"""Multi-backend LLM serving benchmark. The rooms and the direction data flows in are in docs/architecture.md."""

__version__ = "0.2.0"

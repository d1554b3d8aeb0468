"""Multi-backend LLM serving benchmark. Its rooms and the flow of data: docs/architecture.md."""

__version__ = "0.2.0"

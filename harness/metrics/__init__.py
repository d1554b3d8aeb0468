"""Pure functions from records to figures. Definitions are in docs/metrics.md; nothing here does I/O."""

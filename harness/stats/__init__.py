"""Inference on few runs, in pure numpy and terms of statistics. docs/verdicts-evidence.md has checks."""

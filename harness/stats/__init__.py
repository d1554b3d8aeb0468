"""Inference on few runs: pure numpy, no domain words. docs/verdicts-evidence.md has the checks."""

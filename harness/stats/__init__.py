"""Inference on few runs: pure numpy, no domain words. How each method was checked: docs/verdicts.md."""

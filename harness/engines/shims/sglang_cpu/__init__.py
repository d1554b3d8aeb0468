"""Packages in place of those that SGLang imports and that have no build for a CPU: on its PYTHONPATH."""

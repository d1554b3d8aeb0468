"""Flags that several commands share, the types of their values, and the layout of `--help`."""

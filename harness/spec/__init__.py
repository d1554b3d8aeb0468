"""Definitions in TOML as frozen types: an unknown key is an error."""

"""Kits for a machine without network: collected here, compiled and measured there, carried back in parts."""

"""Requests of a run, from a seed or from recorded traffic, and when they leave."""

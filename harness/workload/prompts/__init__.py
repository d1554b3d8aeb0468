"""Prompts made from a seed, or taken from a data set, with the lengths that a scenario asks for."""

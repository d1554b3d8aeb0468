"""Conclusions of a run as data and sentences, the same for a terminal, a page, JSON and Python.

`conclude` has all of them; none knows an output format.
"""

"""Engines from their packages to their last request: provided, started, spoken to, stopped.

`session` takes one engine through all of that, `simulate` puts the scripted server in its place, and `known`
says what is known of a system whatever is measured on it.
"""

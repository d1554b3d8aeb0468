"""Runs from their flags to their stored cells.

`execute` walks through the plan: set up, measure, keep. `search` and `stopping` choose what comes next.
"""

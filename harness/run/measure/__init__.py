"""Measurement of one cell, and of the answers in which backends should agree.

`measure_cell` sets the cache (`cache_state`), sends a `job` made of the `workloads`, and watches the machine
and the `engine_counters` meanwhile. `cell_facts` are what it keeps of all that.
"""

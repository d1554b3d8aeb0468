"""Checks of engines against this machine, before anything is downloaded or started.

`preflight` lists all that is missing, `available` asks the machine, `outdated` compares pinned versions with
those offered now, and `shim_cost` measures what bench's own shim adds.
"""

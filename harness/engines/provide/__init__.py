"""Environments and weights of engines, made in the cache and shared by every run.

`install` builds an environment from its lock, `models` finds, converts or draws weights; both build in
`shared_folders`, and long programs write to a log (`logged`).
"""

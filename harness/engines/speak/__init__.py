"""Requests to a running engine outside the timed window: its version, counters, tokens and cache.

`server` asks and resets, `prometheus` reads its metrics, `dialect` shapes a request as the engine wants it,
`detect` tells which engine an unknown server is, and `access` has the secrets.
"""

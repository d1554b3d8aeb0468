"""Columns of requests, events and sampled series: the arrays that every figure is computed from."""

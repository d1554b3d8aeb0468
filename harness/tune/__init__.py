"""`bench tune`: engine values searched by measuring, under a budget, and confirmed against the default."""

from harness.tune.tuning import Result, Settings, tune

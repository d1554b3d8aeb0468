"""Values that a flag, an option of a run and a key of a document share, so that each list exists once."""

from typing import Literal

LaunchMode = Literal["auto", "compose", "process", "attach", "simulate"]
Device = Literal["auto", "cuda", "rocm", "cpu"]
SizeProfile = Literal["auto", "gpu", "cpu"]  # of a scenario
Balance = Literal["round-robin", "least-outstanding"]  # of requests over several URLs of one backend
Arrival = Literal["poisson", "constant", "gamma"]  # of an open loop
BetweenRepeats = Literal["restart", "reset", "keep"]  # what happens to an engine
Pairing = Literal["starts", "blocks", "duet"]  # whether engines are up together, and loaded at once
# Least and most repeats of --repeats auto where nothing else is asked for. Repeats of servers that run are
# blocks of their one start.
AUTO_REPEATS, SERVER_BLOCKS = (3, 10), (10, 40)
PREFILL, DECODE = ROLES = ("prefill", "decode")  # of engines that share the work on one request

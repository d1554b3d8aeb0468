"""How long the loop may look away while the kernel stamps arrivals.

Reading in batches halves the cost of a token. It costs exactness in one place only: two events of one stream
that are read together share a stamp. So the tick stays well below the gap of the streams.
"""

LONGEST_TICK_NS = 2_000_000  # how late a closed-loop successor may leave
SHORTEST_TICK_NS = 100_000  # below this a sleep costs more than it saves
QUIET_READS_PER_S = 2_000  # prompt reading costs under 3% of a core up to here
_TICKS_PER_GAP = 4


def choose_tick(reads: int, elapsed_ns: int, streams: int) -> int:
    """Goes by the recent reads: streams / read rate is the mean gap of one stream."""
    if reads * 1_000_000_000 < QUIET_READS_PER_S * elapsed_ns:
        return 0
    gap_ns = streams * elapsed_ns // reads
    tick = min(LONGEST_TICK_NS, gap_ns // _TICKS_PER_GAP)
    return tick if tick >= SHORTEST_TICK_NS else 0

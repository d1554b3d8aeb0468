"""A closed loop out of lockstep: the slots' second requests, spread evenly over one answer time."""


class StaggeredStart:
    """Keeps slots that start together, and get answers of equal length, from sending together for ever.

    With `e0` the first end of a first answer and `d` their mean duration so far, the j-th first answer to
    end frees its slot at `e0 + j * d / N` at the earliest: sends come `d / N` apart, as they would with
    independent slots. Where answers end further apart than that already, nothing waits.
    """

    def __init__(self, slots: range) -> None:
        """`slots`: this worker's share of all slots, which are dealt in turn."""
        self._slots = slots
        self._ended = self._answered = 0
        self._total_ns = self._first_end = self._last_due = 0

    def answered(self, sent: int, end: int) -> None:
        """Is called at the end of every request of a slot's first turn."""
        self._answered += 1
        self._total_ns += end - sent

    def earliest(self, end: int) -> int:
        """The time from which the slot may go on whose first request (or session) ended at `end`."""
        if not self._ended:
            self._first_end = end
        slot = self._slots[min(self._ended, len(self._slots) - 1)]
        self._ended += 1
        mean_ns = self._total_ns // max(self._answered, 1)
        earliest = self._first_end + slot * mean_ns // self._slots.stop
        self._last_due = max(self._last_due, earliest if earliest > end else self._first_end)
        return earliest

    @property
    def over_at(self) -> int | None:
        """The time at which the last slot that had to wait went on, on the clock of the ends.

        It is the end of the first answer if none had to wait, and None if no slot has come so far.
        """
        return self._last_due if self._ended else None

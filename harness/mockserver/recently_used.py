"""The names used last, of which an engine keeps so many: adapters in memory, encodings of images."""

from collections import OrderedDict


class RecentlyUsed:
    """The `capacity` names that were asked for last."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._names: OrderedDict[str, None] = OrderedDict()  # the one used last is last

    def claim(self, name: str) -> bool:
        """Whether it was among them; it is from now on."""
        known = name in self._names
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > self._capacity:
            self._names.popitem(last=False)
        return known

"""Things of which an engine holds the last ones: adapters in memory, encodings of images."""

from collections import OrderedDict


class Held:
    """Names of what is held: the `capacity` that were asked for last."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._names: OrderedDict[str, None] = OrderedDict()  # the one used last is last

    def claim(self, name: str) -> bool:
        """Whether it was held; it is from now on."""
        held = name in self._names
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > self._capacity:
            self._names.popitem(last=False)
        return held

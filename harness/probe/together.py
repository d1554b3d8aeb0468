"""Requests in flight together."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

_SIDE_BY_SIDE = 4  # requests in flight: what every engine takes at once, or queues


def side_by_side(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs the tasks together and returns their results in order; the first error is raised.

    Ctrl-C does not wait for those that hang.
    """
    results: list[Any] = [None] * len(tasks)
    errors: list[BaseException] = []
    waiting = iter(enumerate(tasks))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number, task = next(waiting, (0, None))
            if task is None or errors:
                return
            try:
                results[number] = task()
            except BaseException as error:  # raised again where the results are waited for
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_SIDE_BY_SIDE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results

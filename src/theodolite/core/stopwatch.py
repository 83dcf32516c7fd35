"""Time that was had: seconds of the clock, less what a busy machine kept back, but never less than half of them."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds since it was made, as far as this process could use them.

    What is bought with a budget must not depend on what else runs on the machine, and nobody should wait for ever: where
    other programs take the processor, time that was not had does not count, up to half of the clock's.
    """

    def __init__(self) -> None:
        self._clock, self._used = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """What has gone by."""
        clock, used = time.perf_counter() - self._clock, time.process_time() - self._used
        return max(min(clock, used), clock / 2)

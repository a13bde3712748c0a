"""Progress of searches: how an observer learns of their evaluations."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Reporter", "observed", "report", "verbosely"]

EVERY = 2.0  # seconds between lines

_observer: ContextVar[Callable[[float], None] | None] = ContextVar("observer", default=None)


def report(value: float) -> None:
    """Pass the value per sample of an objective that was evaluated to the observer, if there is one."""
    observer = _observer.get()
    if observer is not None:
        observer(value)


@contextmanager
def observed(observer: Callable[[float], None]) -> Iterator[None]:
    """Call the observer after every evaluation."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


class Reporter:
    """An observer that writes a line every few seconds: evaluations, value of the objective, seconds."""

    def __init__(
        self, write: Callable[[str], object], every: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.write, self.every, self.clock = write, every, clock
        self.evaluations = 0
        self._start = self._last = clock()

    def __call__(self, value: float) -> None:
        """Count an evaluation."""
        self.evaluations += 1
        now = self.clock()
        if now - self._last >= self.every:
            self._last = now
            self.write(
                f"evaluation {self.evaluations}, objective {value:.6g} per sample, {now - self._start:.1f} s"
            )


@contextmanager
def verbosely(verbose: bool) -> Iterator[None]:
    """Write the progress of searches to stderr, if ``verbose``; otherwise keep the present observer."""
    if not verbose:
        yield
        return

    def write(line: str) -> None:
        print(f"wienerkernel: {line}", file=sys.stderr)

    start = time.monotonic()
    reporter = Reporter(write, EVERY)
    with observed(reporter):
        yield
    write(f"fitted after {reporter.evaluations} evaluations in {time.monotonic() - start:.1f} s")

"""A progress bar on a terminal; a line every five seconds elsewhere."""
import sys
import time


class Progress:
    def __init__(self, total, seconds):
        self._total, self._seconds = total, seconds
        self._done, self._started, self._printed = 0, time.monotonic(), 0.0
        self._terminal = sys.stdout.isatty()

    def advance(self, count):
        self._done += count
        now = time.monotonic()
        if now - self._printed >= (0.1 if self._terminal else 5):
            self._printed = now
            self._print(now)

    def finish(self):
        self._print(time.monotonic())
        if self._terminal:
            print()

    def _print(self, now):
        elapsed = now - self._started
        part = min(1.0, max(self._done / self._total, elapsed / self._seconds))
        bar = "#" * round(part * 30)
        line = (f"  [{bar:<30}] {self._done:,} embedded, {self._done / max(elapsed, 1e-9):,.0f} a second, "
                f"{elapsed:.0f} of at most {self._seconds:.0f} s")
        print(f"\r{line}\x1b[K" if self._terminal else line, end="" if self._terminal else "\n", flush=True)

"""Times engines that take turns, so that a busy moment of the machine meets all of them.

A ratio is the median of the ratios of each turn. Shares are of what the machine gave in the same turn.
"""
import statistics
import time

SECONDS_PER_TURN = 0.08
MOST_REPEATS = 150  # of a turn: a run that waits for a busy core may take a hundred times as long as when it was tried
# A peer's threads spin on for tens of milliseconds after its turn; one thread has nobody to wait for.
PAUSE = {False: 0.02, True: 0.12}


class Unavailable(Exception):
    """Why an engine is left out."""


class Turns:
    """Of one group of engines in memory together; `peak` answers `measure()`, or is None. An engine that fails is left out
    from then on, and `tell(engine, why)` hears of it."""

    def __init__(self, engines, threads, peak, tell=None, sleep=time.sleep):
        self.engines = engines
        self._peak = peak
        self._tell = tell or (lambda engine, why: None)
        self._sleep = sleep
        self._pause = PAUSE[threads > 1]

    def take(self, work, rounds):
        """{engine: [{"s", "cpu_s"}, ...]} and the peaks, one a round. `work` is {engine: (batches, variant)}."""
        repeats = self._of_each(self.engines, lambda engine: self._repeat(engine, *work[engine]))
        turns, peaks = {engine: [] for engine in self.engines}, []
        for turn in range(rounds):
            if self._peak:
                peaks.append(self._peak.measure())
            first = turn % max(1, len(self.engines))
            taken = self._of_each(self.engines[first:] + self.engines[:first],
                                  lambda engine: self._one(engine, repeats[engine], *work[engine]))
            for engine, times in taken.items():
                turns[engine].append(times)
        return {engine: turns[engine] for engine in self.engines}, peaks

    def fastest_ways(self, sequences):
        """{engine: (description, (batches, variant))}: of the arrangements that each offers."""
        return self._of_each(self.engines, lambda engine: self._fastest_way(engine, sequences))

    def _of_each(self, engines, work):
        found = {}
        for engine in list(engines):
            try:
                found[engine] = work(engine)
            except Unavailable as why:
                self.engines = [other for other in self.engines if other is not engine]
                self._tell(engine, why)
        return found

    def _fastest_way(self, engine, sequences):
        ways = engine.ways(sequences)
        if len(ways) == 1:
            return ways[0][0], ways[0][1:]
        trials = []
        for description, batches, variant in ways:
            self._sleep(self._pause)
            seconds = engine.run(batches, 2, variant)
            if min(seconds) < SECONDS_PER_TURN / 10:
                seconds = engine.run(batches, 10, variant)
            trials.append((min(seconds), description, (batches, variant)))
        return min(trials, key=lambda trial: trial[0])[1:]

    @staticmethod
    def _repeat(engine, batches, variant):
        engine.run(batches, 1, variant)
        return min(MOST_REPEATS, max(1, round(SECONDS_PER_TURN / min(engine.run(batches, 2, variant)))))

    def _one(self, engine, repeat, batches, variant):
        self._sleep(self._pause)
        before = engine.figures.cpu_seconds()
        seconds = engine.run(batches, repeat, variant)
        return {"s": statistics.median(seconds), "cpu_s": (engine.figures.cpu_seconds() - before) / repeat}


def median_ratio(ours, peer, are_paired, what="s"):
    """How many times as fast as the peer. Engines that did not take turns have only their medians to be compared."""
    if are_paired:
        return statistics.median(theirs[what] / mine[what] for mine, theirs in zip(ours, peer))
    return statistics.median(t[what] for t in peer) / statistics.median(t[what] for t in ours)


def shares(turns, peaks, flop, matrix_bytes, dtype, threads):
    """Of the arithmetic, and of the reading of matrices once, that the machine gave in the same round.

    "of_peak_busy" is by the processor time of all threads, which neighbours on the machine disturb less. A share of what was
    not measured is left out.
    """
    def share(amount, name, seconds):
        rates = [peak.get(name) for peak in peaks]
        if amount is None or not rates or None in rates:
            return None
        return statistics.median(amount / seconds(turn) / rate for turn, rate in zip(turns, rates))

    found = {"of_peak": share(flop, dtype, lambda turn: turn["s"]),
             "of_peak_busy": share(flop, dtype, lambda turn: turn["cpu_s"] / threads),
             "of_memory": share(matrix_bytes, "read", lambda turn: turn["s"]),
             "of_weights_read": share(matrix_bytes, "read_weights", lambda turn: turn["s"])}
    return {name: value for name, value in found.items() if value is not None}


def groups_that_fit(engines, bytes_of, available):
    """Engines (name, dtype) that share memory, and so take turns: all, else those of one precision, else none with another.

    At most 0.6 of what is available is planned for."""
    def fits(groups):
        return all(sum(map(bytes_of, group)) <= 0.6 * available for group in groups)

    dtypes = sorted({dtype for _, dtype in engines}, reverse=True)  # float32 first
    for groups in ([list(engines)], [[e for e in engines if e[1] == dtype] for dtype in dtypes]):
        if fits(groups):
            return groups
    return [[engine] for engine in engines]

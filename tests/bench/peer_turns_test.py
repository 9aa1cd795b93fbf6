"""How engines take turns, and what is made of their times."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from peer_turns import Turns, Unavailable, groups_that_fit, median_ratio, shares  # noqa: E402


class FakeEngine:
    """Takes `seconds[variant]` for each batch, and notes who ran when. It is its own source of processor time."""

    def __init__(self, name, log, **seconds):
        self.name, self._log, self._seconds = name, log, seconds
        self.figures, self._spent, self.fails_after = self, 0.0, 1000

    def ways(self, _):
        return [(variant, [[[1]]], variant) for variant in self._seconds]

    def run(self, batches, repeat, variant):
        self.fails_after -= 1
        if self.fails_after < 0:
            raise Unavailable("out of memory")
        self._log.append((self.name, repeat))
        self._spent += 2 * repeat * self._seconds[variant]
        return [len(batches) * self._seconds[variant]] * repeat

    def cpu_seconds(self):
        return self._spent


class TurnsTest(unittest.TestCase):
    def setUp(self):
        self.log, self.pauses = [], []
        self.engines = [FakeEngine("a", self.log, one=0.02), FakeEngine("b", self.log, one=0.3)]
        self.turns = Turns(list(self.engines), 2, None, sleep=self.pauses.append)
        self.work = {engine: ([[[1]]], "one") for engine in self.engines}

    def test_alternate_and_each_begins_in_turn(self):
        self.turns.take(self.work, 3)
        self.assertEqual([name for name, _ in self.log[-6:]], ["a", "b", "b", "a", "a", "b"])
        self.assertEqual(len(self.pauses), 6)

    def test_repeat_a_short_run_until_a_turn_is_full(self):
        self.turns.take(self.work, 1)
        self.assertEqual(self.log[-2:], [("a", 4), ("b", 1)])

    def test_tell_wall_and_processor_time_of_one_run(self):
        taken, peaks = self.turns.take(self.work, 2)
        self.assertEqual(len(taken[self.engines[0]]), 2)
        self.assertAlmostEqual(taken[self.engines[0]][0]["s"], 0.02)
        self.assertAlmostEqual(taken[self.engines[0]][0]["cpu_s"], 0.04)
        self.assertEqual(peaks, [])

    def test_take_the_way_that_is_fastest(self):
        engine = FakeEngine("c", self.log, one=0.5, fixed=0.4, streams=0.45)
        found = Turns([engine], 1, None, sleep=self.pauses.append).fastest_ways([[1]])
        self.assertEqual(found[engine][0], "fixed")

    def test_go_on_without_an_engine_that_fails(self):
        failed = []
        turns = Turns(list(self.engines), 2, None, lambda engine, why: failed.append((engine.name, str(why))),
                      sleep=self.pauses.append)
        self.engines[0].fails_after = 3
        taken, _ = turns.take(self.work, 3)
        self.assertEqual(failed, [("a", "out of memory")])
        self.assertEqual([(engine.name, len(some)) for engine, some in taken.items()], [("b", 3)])


class FiguresTest(unittest.TestCase):
    def test_ratio_is_the_median_over_turns_and_not_of_the_medians(self):
        ours, peer = ([{"s": s} for s in times] for times in ((1, 10, 3), (2, 11, 9)))
        self.assertEqual(median_ratio(ours, peer, True), 2)
        self.assertEqual(median_ratio(ours, peer, False), 3)

    def test_shares_are_of_what_the_same_round_gave(self):
        turns = [{"s": 1.0, "cpu_s": 1.0}, {"s": 2.0, "cpu_s": 1.0}, {"s": 1.0, "cpu_s": 1.0}]
        peaks = [{"float32": 100.0, "read": 10.0}, {"float32": 50.0, "read": 10.0}, {"float32": 80.0, "read": 10.0}]
        found = shares(turns, peaks, 40, 5, "float32", 1)
        self.assertAlmostEqual(found["of_peak"], 0.4)
        self.assertAlmostEqual(found["of_peak_busy"], 0.5)
        self.assertAlmostEqual(found["of_memory"], 0.5)
        self.assertNotIn("of_weights_read", found)

    def test_no_share_of_a_precision_that_was_not_measured(self):
        self.assertEqual(shares([{"s": 1.0, "cpu_s": 1.0}], [{"bfloat16": None}], 1, None, "bfloat16", 1), {})


class GroupsTest(unittest.TestCase):
    ENGINES = [("a", "float32"), ("b", "float32"), ("a", "bfloat16")]

    def test_all_take_turns_where_they_fit(self):
        self.assertEqual(groups_that_fit(self.ENGINES, lambda _: 1, 5), [self.ENGINES])

    def test_else_those_of_one_precision(self):
        self.assertEqual(groups_that_fit(self.ENGINES, lambda _: 1, 4), [self.ENGINES[:2], self.ENGINES[2:]])

    def test_else_one_after_the_other(self):
        self.assertEqual(groups_that_fit(self.ENGINES, lambda _: 1, 2), [[engine] for engine in self.ENGINES])


if __name__ == "__main__":
    unittest.main()

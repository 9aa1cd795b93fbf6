"""What is made of the times of a step with each instruction set."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from instruction_sets import parse  # noqa: E402


def entry(run_name, aggregate="median", **members):
    return {"run_name": run_name, "aggregate_name": aggregate, "real_time": 2.5, "cpu_ms": 2.25, "busy": 0.75, **members}


class InstructionSetsTest(unittest.TestCase):
    def test_takes_medians_apart(self):
        self.assertEqual(parse([entry("Step/bf16_avx2/sequences:4/tokens:256/threads:1/real_time")]),
                         [{"isa": "avx2", "dtype": "bfloat16", "sequences": 4, "tokens": 256, "ms": 2.5, "cpu_ms": 2.25,
                           "of_peak_busy": 0.75}])

    def test_without_a_name_it_is_the_best_set(self):
        self.assertEqual(parse([entry("Step/f32/sequences:1/tokens:8/threads:1/real_time")])[0]["isa"], "best")

    def test_gives_rows_in_an_order_for_reading(self):
        names = [f"Step/{kernels}/sequences:{count}/tokens:8/threads:1/real_time"
                 for kernels in ("bf16", "f32_plain", "f32") for count in (4, 1)]
        found = [(row["dtype"], row["isa"], row["sequences"]) for row in parse([entry(name) for name in names])]
        self.assertEqual(found, [("float32", "best", 1), ("float32", "best", 4), ("float32", "plain", 1), ("float32", "plain", 4),
                                 ("bfloat16", "best", 1), ("bfloat16", "best", 4)])

    def test_leaves_out_other_aggregates_and_sets_that_the_processor_lacks(self):
        name = "Step/f32_avx512/sequences:1/tokens:8/threads:1/real_time"
        self.assertEqual(parse([entry(name, "mean"), entry(name, error_occurred=True)]), [])


if __name__ == "__main__":
    unittest.main()

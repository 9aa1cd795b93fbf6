"""Measures of quality against values worked out by hand."""
import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from retrieval_metrics import ndcg, ranks, spearman  # noqa: E402


class NdcgTest(unittest.TestCase):
    def test_is_one_for_the_best_order(self):
        self.assertEqual(ndcg([7, 3, 9], {7: 4, 3: 1}), 1.0)

    def test_discounts_by_the_logarithm_of_the_rank(self):
        # The only relevant document is second: 1 / log2(3).
        self.assertAlmostEqual(ndcg([5, 7], {7: 1}), 0.6309297535714575)

    def test_weighs_grades(self):
        # Gains 1, 0, 3 where 3, 1 would be best: (1 + 3/2) / (3 + 1/log2(3)).
        self.assertAlmostEqual(ndcg([1, 2, 3], {3: 3, 1: 1}), 2.5 / (3 + 1 / math.log2(3)))

    def test_sees_no_further_than_its_depth(self):
        self.assertEqual(ndcg(range(20), {10: 1}), 0.0)
        self.assertAlmostEqual(ndcg(range(20), {9: 1}), 1 / math.log2(11))

    def test_compares_with_as_many_as_its_depth_can_show(self):
        # Twelve relevant documents, and the ten shown are all relevant.
        self.assertAlmostEqual(ndcg(range(10), {i: 1 for i in range(12)}), 1.0)

    def test_is_zero_where_nothing_is_relevant(self):
        self.assertEqual(ndcg([1, 2], {}), 0.0)


class SpearmanTest(unittest.TestCase):
    def test_equal_values_share_the_mean_of_their_ranks(self):
        self.assertEqual(ranks([10, 20, 20, 5, 20]), [2, 4, 4, 1, 4])

    def test_is_one_for_any_rising_relation(self):
        self.assertAlmostEqual(spearman([1, 2, 3, 4], [1, 8, 27, 1000]), 1.0)
        self.assertAlmostEqual(spearman([1, 2, 3, 4], [4, 3, 2, 1]), -1.0)

    def test_without_ties_is_the_formula_of_squared_differences(self):
        # Differences of ranks 0, 1, -1, 0, 0: 1 - 6 * 2 / (5 * 24).
        self.assertAlmostEqual(spearman([1, 2, 3, 4, 5], [1, 3, 2, 4, 5]), 0.9)

    def test_with_ties(self):
        # Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: covariance 4.5, spreads 4.5 and 5.
        self.assertAlmostEqual(spearman([1, 2, 2, 3], [1, 3, 2, 4]), 4.5 / math.sqrt(4.5 * 5))

    def test_is_not_a_number_for_a_constant(self):
        self.assertTrue(math.isnan(spearman([1, 1, 1], [1, 2, 3])))


if __name__ == "__main__":
    unittest.main()

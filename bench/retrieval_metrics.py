"""Measures of quality from plain lists. Needs Python's own library only."""
import math


def ndcg(ranked, gains, depth=10):
    """Normalised discounted cumulative gain of the first `depth` of the ids `ranked`, best first; `gains` is {id: gain}, and
    what is not in it gains nothing. As trec_eval has it: gain over log2(1 + rank), against the best possible order."""
    def discounted(values):
        return sum(value / math.log2(rank + 2) for rank, value in enumerate(values[:depth]))

    best = discounted(sorted(gains.values(), reverse=True))
    return discounted([gains.get(name, 0) for name in ranked]) / best if best else 0.0


def ranks(values):
    """From 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    found, begin = [0.0] * len(values), 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for i in order[begin:end]:
            found[i] = (begin + 1 + end) / 2
        begin = end
    return found


def pearson(a, b):
    """NaN where one of them is constant."""
    mean_a, mean_b = math.fsum(a) / len(a), math.fsum(b) / len(b)
    covariance = math.fsum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    spread = math.sqrt(math.fsum((x - mean_a) ** 2 for x in a) * math.fsum((y - mean_b) ** 2 for y in b))
    return covariance / spread if spread else math.nan


def spearman(a, b):
    return pearson(ranks(a), ranks(b))

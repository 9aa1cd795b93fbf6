"""How far vectors are from others."""
import numpy as np


def largest_distance(found, wanted):
    """1 - cosine of the row that is furthest off; of rows that are all zeros on both sides, as of an empty text, nothing.
    Infinite when shapes differ or a value is not a number."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if found.shape != wanted.shape:
        return float("inf")
    norms = np.linalg.norm(found, axis=1), np.linalg.norm(wanted, axis=1)
    both = norms[0] * norms[1]
    cosine = np.divide((found * wanted).sum(1), both, out=np.where(norms[0] == norms[1], 1.0, 0.0), where=both != 0)
    worst = float(np.max(1 - cosine))
    return worst if worst == worst else float("inf")

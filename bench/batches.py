"""How token ids are put together for an engine."""
import numpy as np


def in_order(sequences, size):
    """Batches of at most `size` tokens, or of one longer sequence, in order of arrival: nothing is padded."""
    batches, tokens = [[]], 0
    for ids in sequences:
        if batches[-1] and tokens + len(ids) > size:
            batches.append([])
            tokens = 0
        batches[-1].append(ids)
        tokens += len(ids)
    return batches


def padded(batch):
    """The arrays of a graph whose batches are rectangles: ids and mask, [sequences, longest]."""
    length = max(map(len, batch))
    ids = np.zeros((len(batch), length), np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(batch):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask}

"""Questions about the engine alone, against ONNX Runtime in the same run: latency of one sequence, and throughput.

The two take turns, so that a busy moment of the machine meets both; a ratio is the median of the ratios of each turn.
"""
import random
import statistics
import time

import numpy as np

LENGTHS = (8, 16, 32, 128, 256)
ROUNDS = 15
SECONDS_PER_TURN = 0.08
PAUSE = 0.12  # the peer's threads spin on for tens of milliseconds after its turn: at 5 ms they took a third of our time


def random_ids(length, generator):
    """[CLS], then ordinary word pieces, then [SEP]: what they are does not matter for the time."""
    return [101] + [generator.randrange(1996, 30000) for _ in range(length - 2)] + [102]


def workloads():
    generator = random.Random(7)
    short = [random_ids(max(6, min(32, round(generator.gauss(14, 5)))), generator) for _ in range(256)]
    abstracts = [random_ids(256, generator) for _ in range(24)]
    return {"short sentences": short, "abstracts of 256 tokens": abstracts}


def check_same_vectors(engines):
    """Both must mean the same thing before either is timed. Returns 1 - cosine of the worst pair."""
    generator = random.Random(3)
    worst = 0.0
    for length in (8, 57, 256):
        ids = random_ids(length, generator)
        a, b = (engine.first_row(ids) for engine in engines)
        worst = max(worst, 1 - float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    if worst > 1e-5:
        raise SystemExit(f"bench: the engines disagree, 1 - cosine = {worst:.1e}: no time is reported")
    return worst


def repeat_for(engine, batches):
    engine.run(batches, 2)
    return max(1, round(SECONDS_PER_TURN / statistics.median(engine.run(batches, 3))))


def take_turns(engines, batches_of):
    """Per engine the median of each turn, in seconds, [ROUNDS]."""
    repeats = [repeat_for(e, b) for e, b in zip(engines, batches_of)]
    turns = [[] for _ in engines]
    for _ in range(ROUNDS):
        for i, engine in enumerate(engines):
            time.sleep(PAUSE)
            turns[i].append(statistics.median(engine.run(batches_of[i], repeats[i])))
    return turns


def ratio(turns):
    """How many times as fast as the peer: median over the turns."""
    return statistics.median(peer / ours for ours, peer in zip(*turns))


def latency(engines):
    rows = []
    for length in LENGTHS:
        ids = random_ids(length, random.Random(length))
        turns = take_turns(engines, [[[ids]]] * len(engines))
        rows.append({"tokens": length, "bouquet_ms": statistics.median(turns[0]) * 1e3,
                     "peer_ms": statistics.median(turns[1]) * 1e3, "ratio": ratio(turns)})
        print(f"  batch 1, {length:3} tokens: {rows[-1]['bouquet_ms']:8.2f} ms, peer {rows[-1]['peer_ms']:8.2f} ms, "
              f"{rows[-1]['ratio']:.2f} x", flush=True)
    return rows


def throughput(engines):
    rows = []
    for name, sequences in workloads().items():
        chosen = []
        for engine in engines:  # each in its own best batch size
            trials = [engine.arrange(sequences, size) for size in engine.sizes]
            chosen.append(min(trials, key=lambda batches: min(engine.run(batches, 3))))
        turns = take_turns(engines, chosen)
        per_second = [len(sequences) / statistics.median(t) for t in turns]
        rows.append({"load": name, "bouquet_per_s": per_second[0], "peer_per_s": per_second[1],
                     "peer_batch": max(map(len, chosen[1])), "ratio": ratio(turns)})
        print(f"  {name}: {per_second[0]:.1f}/s, peer {per_second[1]:.1f}/s, {rows[-1]['ratio']:.2f} x", flush=True)
    return rows


def measure(make_engines, threads):
    engines = make_engines(threads)
    try:
        result = {"threads": threads, "one_minus_cosine": check_same_vectors(engines)}
        print(f"engine, {threads} thread(s): vectors agree, 1 - cosine {result['one_minus_cosine']:.1e}", flush=True)
        result["latency"] = latency(engines)
        result["throughput"] = throughput(engines)
        return result
    finally:
        for engine in engines:
            engine.close()

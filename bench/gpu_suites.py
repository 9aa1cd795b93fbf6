"""What bench/gpu.py measures on one loaded model."""
import math
import random
import statistics
import time
from dataclasses import dataclass

from engine_process import EngineProcess
import gpu_anchors as anchors


@dataclass
class Plan:
    """How much is measured."""
    lengths: tuple = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    runs_short: int = 300  # up to 512 tokens
    runs_long: int = 60
    scored: tuple = (5, 25, 50)  # sequences, of
    scored_tokens: int = 512
    scoring_runs: int = 50
    stream_lengths: tuple = (512, 1024, 4096)
    step_tokens: tuple = (4096, 8192, 16384)
    stream_seconds: float = 1.0
    stream_runs: int = 3
    max_step_tokens: int = 32768
    fresh: tuple = ((3, 11), (3, 43), (3, 150), (6, 150), (7, 270), (5, 700))  # sizes that no suite runs

    @staticmethod
    def quick():
        return Plan(runs_short=200, runs_long=50, scoring_runs=15, stream_seconds=0.5, stream_runs=1)

    @staticmethod
    def tiny():
        return Plan(lengths=(8, 64), runs_short=5, runs_long=5, scored=(3,), scored_tokens=32, scoring_runs=3,
                    stream_lengths=(32,), step_tokens=(128,), stream_seconds=0.02, stream_runs=1, max_step_tokens=1024,
                    fresh=((3, 11),))


def percentile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, math.ceil(share * len(sorted_values)) - 1)]


def spread(values):
    """p50, p90, p99 and max, by nearest rank."""
    ordered = sorted(values)
    return {"runs": len(ordered), "p50": percentile(ordered, 0.5), "p90": percentile(ordered, 0.9),
            "p99": percentile(ordered, 0.99), "max": ordered[-1]}


class Ids:
    """Random token ids of a vocabulary; the same again for the same sizes."""

    def __init__(self, vocabulary):
        self._vocabulary = vocabulary

    def batch(self, sequences, tokens, seed=0):
        draw = random.Random(f"{sequences} {tokens} {seed}")
        return [[draw.randrange(5, self._vocabulary) for _ in range(tokens)] for _ in range(sequences)]

    def steps(self, sequences, tokens, step_tokens):
        """The sequences in steps of at most so many tokens."""
        batch, a_step = self.batch(sequences, tokens), max(1, step_tokens // tokens)
        return [batch[i:i + a_step] for i in range(0, sequences, a_step)]


class Suites:
    def __init__(self, binary, folder, shape_name, ids, options, plan):
        self._binary, self._folder, self._shape, self._plan = binary, folder, shape_name, plan
        self._ids = ids
        self._options = {**options, "max_step_tokens": plan.max_step_tokens}

    def load(self):
        """Loads twice, the second time for good: the first may have searched or read from a disk."""
        loads = []
        for is_last in (False, True):
            started = time.perf_counter()
            engine = EngineProcess(self._binary, self._folder, **self._options)
            engine.ask([self._ids.batch(1, 16)])
            loads.append({"load_s": engine.facts["load_seconds"], "start_to_answer_s": time.perf_counter() - started})
            if not is_last:
                engine.close()
        self._engine = engine
        self._depth = engine.facts["steps_under_way"]
        weights = engine.facts["weight_bytes"]
        return {"first": loads[0], "second": loads[1], "weight_bytes": weights, "peak_host_bytes": engine.peak_bytes(),
                "facts": engine.facts}

    def rows(self, batches):
        """The third run of a size is a replay."""
        return self._engine.rows(batches, repeat=3)

    def close(self):
        self._engine.close()

    def captures(self):
        """What the second run of a fresh size costs more than the third, in Step: capture and instantiation."""
        found = []
        for sequences, tokens in self._plan.fresh:
            answer = self._engine.ask([self._ids.batch(sequences, tokens)], repeat=5)
            host = answer["host_us"]
            if answer["captures"] == 1:
                found.append({"cell": f"{sequences} x {tokens}", "ms": (host[1] - statistics.median(host[2:])) / 1000,
                              "first_us": answer["us"][0], "second_us": answer["us"][1], "third_us": answer["us"][2]})
        return found

    def latency(self):
        return [self._cell(1, tokens, [self._ids.batch(1, tokens)],
                           self._plan.runs_short if tokens <= 512 else self._plan.runs_long)
                for tokens in self._plan.lengths]

    def scoring(self):
        """Each size in one step and in steps of every size, two under way; the fastest way is the cell's."""
        rows = []
        for sequences in self._plan.scored:
            tokens = self._plan.scored_tokens
            ways = {}
            for step_tokens in (*self._plan.step_tokens, sequences * tokens):
                batches = self._ids.steps(sequences, tokens, step_tokens)
                if step_tokens <= self._plan.max_step_tokens and len(batches) not in [len(b) for _, b in ways.values()]:
                    ways[len(ways)] = (step_tokens, batches)
            cells = []
            for step_tokens, batches in ways.values():
                cell = self._cell(sequences, tokens, batches, self._plan.scoring_runs)
                cells.append({**cell, "step_tokens": step_tokens, "steps": len(batches)})
            best = min(cells, key=lambda cell: cell["ms"]["p50"])
            rows.append({**best, "ways": [{k: cell[k] for k in ("step_tokens", "steps", "ms")} for cell in cells]})
        return rows

    def throughput(self):
        rows = []
        for tokens in self._plan.stream_lengths:
            cells = [self._stream(tokens, step_tokens) for step_tokens in self._plan.step_tokens if tokens <= step_tokens]
            rates = {cell["step_tokens"]: cell["per_s"] for cell in cells}
            best = max(cells, key=lambda cell: cell["per_s"])
            row = {"tokens": tokens, **best, "by_step_tokens": rates}
            if anchor := anchors.VLLM_PER_S.get(self._shape, {}).get(tokens):
                row |= {"vllm_per_s": anchor, "ratio": best["per_s"] / anchor}
            if limit := anchors.floor_per_s(self._shape, tokens):
                row |= {"floor_per_s": limit, "of_floor": best["per_s"] / limit}
            rows.append(row)
        return rows

    def _stream(self, tokens, step_tokens):
        """Full steps of distinct sequences, as many under way as the device takes: what many clients make of it."""
        a_step = step_tokens // tokens
        batches = [self._ids.batch(a_step, tokens, seed) for seed in range(8)]
        self._engine.times(batches, repeat=2, under_way=self._depth)
        once = self._engine.times(batches, repeat=1, under_way=self._depth)[0]
        rounds = max(1, math.ceil(self._plan.stream_seconds / once))
        answer = self._engine.ask(batches, repeat=self._plan.stream_runs, under_way=self._depth, rounds=rounds)
        sequences = rounds * len(batches) * a_step
        return {"step_tokens": step_tokens, "per_s": sequences / (statistics.median(answer["us"]) / 1e6),
                "host_us_per_step": statistics.median(answer["host_us"]) / (rounds * len(batches))}

    def _cell(self, sequences, tokens, batches, runs):
        self._engine.times(batches, repeat=5, under_way=self._depth)  # first, capture, replays
        answer = self._engine.ask(batches, repeat=runs, under_way=self._depth)
        cell = {"sequences": sequences, "tokens": tokens, "ms": spread([us / 1000 for us in answer["us"]]),
                "host_us": spread([us / len(batches) for us in answer["host_us"]]), "replays": answer["replays"],
                "eager": answer["eager"], "captures": answer["captures"]}
        if anchor := anchors.VLLM_MS.get(self._shape, {}).get((sequences, tokens)):
            cell |= {"vllm_ms": anchor, "ratio": anchor / cell["ms"]["p50"]}
        if floor := anchors.floor_seconds(self._shape, sequences, tokens):
            cell |= {"floor_ms": 1000 * floor, "of_floor": cell["ms"]["p50"] / (1000 * floor)}
        return cell

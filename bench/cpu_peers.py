#!/usr/bin/env python3
"""`./dev bench cpu-peers`: Bouquet's engine beside OpenVINO, ONNX Runtime, CTranslate2 and sentence-transformers on a CPU.

Same weights, same token ids, same threads, each engine in a process of its own; they take turns. One sequence at a time
of 8 to 256 tokens; throughput on short sentences and on sequences of 256 tokens, each engine in its own best batches;
one thread and two; float32, and bfloat16 where the processor multiplies it; resident memory, time until ready. Vectors
are compared with the reference library in float32 first: an engine beyond 1 - cosine of 1e-5 (bfloat16: 1e-3) gets no
times. A peer that cannot be had is left out, and why is said. Shares are of the multiply-add rate, and of the read rate
of memory, that the machine gave in the same turn. Writes bench/results/DATE-cpu-peers.json.

--shape NAME measures random weights of that shape instead, one sequence at a time. Engines that do not fit in memory
together take turns by precision, or one has all its turns after the other; the result says which.
"""
import argparse
import datetime
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import numpy as np

    import machine
    import make_random_model
    import result_file
    from cosine import largest_distance
    from model_cost import ModelCost
    from peer_turns import Turns, Unavailable, groups_that_fit, median_ratio, shares
    from timed_engines import TITLES, MachinePeak, TimedBouquet, TimedPeer, export
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

GATES = {"float32": 1e-5, "bfloat16": 1e-3}  # 1 - cosine to the reference library in float32
ENGINES = [("bouquet", "float32"), ("openvino", "float32"), ("onnxruntime", "float32"), ("ctranslate2", "float32"),
           ("sentence-transformers", "float32"), ("bouquet", "bfloat16"), ("openvino", "bfloat16"),
           ("sentence-transformers", "bfloat16")]
REFERENCE = ("sentence-transformers", "float32")
SHAPE_PEERS = ("bouquet", "openvino", "sentence-transformers")
LENGTHS, SHAPE_LENGTHS = (8, 16, 32, 128, 256), (8, 32, 128, 512)
CHECKED = (8, 57, 256)
NEEDED_PER_WEIGHT_BYTE = 1.5  # of float32; a packed copy, or a mapped file beside one
PROCESS_BYTES = 600e6
SHARES = {"of_peak": "of peak", "of_peak_busy": "by processor time", "of_memory": "of memory's read rate",
          "of_weights_read": "of the weights' own"}


class Plan:
    """How much of everything: of the whole run, of a shape, of a trial of the script."""

    def __init__(self, arguments):
        quick = arguments.quick
        self.latency_rounds = 2 if quick else 5 if arguments.shape else 9
        self.throughput_rounds = 1 if quick else 5
        self.lengths = SHAPE_LENGTHS if arguments.shape else LENGTHS[::2] if quick else LENGTHS
        self.loads = {} if arguments.shape else {"short sentences": 16, "256 tokens": 2} if quick else {
            "short sentences": 128, "256 tokens": 12}


def title(key):
    return f"{TITLES[key[0]]} {key[1]}"


def available_bytes():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 0


def weight_bytes(model):
    return sum(file.stat().st_size for file in Path(model).glob("*.safetensors"))


def load_sequences(name, count, cost):
    generator = random.Random(7)
    if name == "256 tokens":
        return [cost.random_ids(256, generator) for _ in range(count)]
    return [cost.random_ids(max(6, min(32, round(generator.gauss(14, 5)))), generator) for _ in range(count)]


class Measurement:
    """Of one model folder with one number of threads."""

    def __init__(self, model, threads, plan, arguments):
        self._model, self._threads, self._plan, self._arguments = model, threads, plan, arguments
        self._exports = ROOT / "build/bench/peers" / model.name
        self._cost = ModelCost(model)
        generator = random.Random(3)
        self._checked = [self._cost.random_ids(n, generator) for n in CHECKED]
        self._reference = None
        self.left_out, self._facts, self._cells = {}, {}, {}

    def result(self):
        peak = MachinePeak(self._arguments.binaries, self._threads, self._cost.matrix_bytes("float32"))
        keys = self._keys(peak.has_bfloat16)
        groups = groups_that_fit(keys, lambda _: PROCESS_BYTES + NEEDED_PER_WEIGHT_BYTE * weight_bytes(self._model),
                                 available_bytes())
        print(f"{self._model.name}, {self._threads} thread(s); load average {os.getloadavg()[0]:.1f}", flush=True)
        self._compare_with_reference()
        peaks = []
        for group in groups:
            peaks += self._measure_group(group, peak)
        peak.close()
        return {"threads": self._threads, "load_average": os.getloadavg()[0],
                "turns": [[title(key) for key in group] for group in groups], "left_out": self.left_out,
                "reference": title(self._reference[0]),
                "machine_gave": {name: statistics.median(p[name] for p in peaks) for name in peaks[0]
                                 if peaks[0][name] is not None} if peaks else {},
                "engines": {title(key): facts for key, facts in self._facts.items()},
                "cells": [self._row(cell, groups) for cell in self._cells]}

    def _keys(self, has_bfloat16):
        keys = [key for key in ENGINES if key[0] in self._arguments.engines]
        if not has_bfloat16:
            for key in [key for key in keys if key[1] == "bfloat16"]:
                keys.remove(key)
                self._leave_out(key, "this processor does not multiply bfloat16")
        return keys

    def _leave_out(self, key, why):
        self.left_out[title(key)] = str(why)
        print(f"  left out: {title(key)}: {why}", flush=True)

    def _start(self, key):
        name, dtype = key
        if name == "bouquet":
            return TimedBouquet(self._arguments.binaries, self._model, dtype, self._threads)
        return TimedPeer(name, self._arguments.python, self._model,
                         export(name, self._arguments.python, self._model, self._exports), dtype, self._threads)

    def _compare_with_reference(self):
        """Rows of the reference library; without it of Bouquet in float32, and the result says so."""
        for key in (REFERENCE, ("bouquet", "float32")):
            try:
                engine = self._start(key)
                self._reference = key, engine.rows(self._checked)
            except Unavailable as why:
                print(f"  no reference: {title(key)}: {why}", flush=True)
                continue
            engine.close()
            return

    def _measure_group(self, group, peak):
        engines = {}
        try:
            for key in group:
                self._add(key, engines)
            key_of = {engine: key for key, engine in engines.items()}
            turns = Turns(list(key_of), self._threads, peak, lambda engine, why: self._leave_out(key_of[engine], why))
            return self._measure_cells(key_of, turns) if engines else []
        finally:
            for engine in engines.values():
                engine.close()

    def _add(self, key, engines):
        try:
            engine = self._start(key)
            distance = largest_distance(engine.rows(self._checked), self._reference[1])
        except Unavailable as why:
            self._leave_out(key, why)
            return
        self._facts[key] = {"version": engine.version, "ready_s": engine.ready_seconds,
                            "resident_mb": engine.figures.resident_mb(), "one_minus_cosine": distance}
        print(f"  {title(key)}: ready after {engine.ready_seconds:.2f} s, "
              f"{self._facts[key]['resident_mb']:.0f} MB, 1 - cosine {distance:.1e}", flush=True)
        if not distance <= GATES[key[1]]:
            self._leave_out(key, f"vectors differ: 1 - cosine {distance:.1e}, at most {GATES[key[1]]:.0e}")
            engine.close()
            return
        engines[key] = engine

    def _measure_cells(self, key_of, turns):
        peaks = []
        for length in self._plan.lengths:
            sequences = [self._cost.random_ids(length, random.Random(length))]
            peaks += self._measure_cell(("latency", f"{length} tokens", 1), sequences, turns, self._plan.latency_rounds, key_of)
        for name, count in self._plan.loads.items():
            sequences = load_sequences(name, count, self._cost)
            peaks += self._measure_cell(("throughput", name, count), sequences, turns, self._plan.throughput_rounds, key_of)
        return peaks

    def _measure_cell(self, cell, sequences, turns, rounds, key_of):
        chosen = turns.fastest_ways(sequences)
        taken, peaks = turns.take({engine: work for engine, (_, work) in chosen.items()}, rounds)
        entries = self._cells.setdefault(cell, {})
        flop = self._cost.flop([len(ids) for ids in sequences])
        for engine, some in taken.items():
            key = key_of[engine]
            streamed = self._cost.matrix_bytes(key[1]) if cell[0] == "latency" else None
            entries[key] = {"turns": some, "way": chosen[engine][0],
                            **shares(some, peaks, flop, streamed, key[1], self._threads)}
        print(f"  {cell[1]:>15}: " + ", ".join(
            f"{title(key_of[engine])} {statistics.median(t['s'] for t in some) * 1e3 / cell[2]:.2f} ms"
            for engine, some in taken.items()), flush=True)
        return peaks

    def _row(self, cell, groups):
        entries = self._cells[cell]
        row = {"kind": cell[0], "cell": cell[1], "sequences": cell[2], "engines": {}, "ratios": {}}
        for key, entry in entries.items():
            seconds = statistics.median(t["s"] for t in entry["turns"])
            row["engines"][title(key)] = {
                "ms": seconds * 1e3 / cell[2], "cpu_ms": statistics.median(t["cpu_s"] for t in entry["turns"]) * 1e3 / cell[2],
                "per_s": cell[2] / seconds, **{name: value for name, value in entry.items() if name != "turns"},
                "turns_ms": [round(t["s"] * 1e3, 4) for t in entry["turns"]]}
        for dtype in GATES:
            best = best_peer(entries, ("bouquet", dtype), groups)
            if best:
                row["ratios"][dtype] = best
        return row


def best_peer(entries, ours, groups):
    """Which peer of the same precision is ahead of the others, and how many times as fast as it we are."""
    peers = [key for key in entries if key[1] == ours[1] and key != ours]
    if ours not in entries or not peers:
        return None

    def ratio(peer, what="s"):
        are_paired = any(ours in group and peer in group for group in groups)
        return median_ratio(entries[ours]["turns"], entries[peer]["turns"], are_paired, what)

    best = min(peers, key=ratio)
    return {"peer": title(best), "ratio": ratio(best), "cpu_ratio": ratio(best, "cpu_s")}


def show(result):
    """Ratios and shares of one number of threads."""
    print(f"\n{result['threads']} thread(s): times as fast as the best peer of the same precision, and shares of what the "
          "machine gave")
    for row in result["cells"]:
        for dtype in GATES:
            ours = row["engines"].get(title(("bouquet", dtype)))
            if ours is None:
                continue
            best = row["ratios"].get(dtype)
            parts = [f"{row['cell']:>15} {dtype:8}: "
                     + (f"{best['ratio']:.2f} x {best['peer'].rpartition(' ')[0]}" if best else "no peer")]
            for name, text in SHARES.items():
                if name in ours:
                    parts.append(f"{100 * ours[name]:.0f} % {text}")
            print("  " + ", ".join(parts))
    print(flush=True)


def random_model(shape):
    folder = ROOT / "build/bench/models" / shape
    if not (folder / "tokenizer_config.json").exists():
        print(f"making random weights: {shape}", flush=True)
        subprocess.run([sys.executable, str(ROOT / "tools/make_random_model.py"), str(folder), "--shape", shape], check=True)
    return folder


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench cpu-peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "build/models/all-MiniLM-L6-v2")
    parser.add_argument("--shape", action="append", choices=sorted(make_random_model.SHAPES), metavar="NAME",
                        help="random weights, such as qwen3-0.6b; may be repeated")
    parser.add_argument("--engines", nargs="+", choices=list(TITLES), metavar="NAME", help=", ".join(TITLES))
    parser.add_argument("--threads", nargs="+", type=int, help="default: 1 and 2; with --shape 2; as far as there are cores")
    parser.add_argument("--quick", action="store_true", help="fewer lengths and rounds, to try the script")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/bench", help="folder of what is measured")
    parser.add_argument("--python", type=Path, default=sys.executable, help="which runs the peers")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results")
    options = parser.parse_args(arguments)
    if not options.shape and not (options.model / "config.json").exists():
        parser.error(f"no model folder: {options.model}")
    options.engines = options.engines or (SHAPE_PEERS if options.shape else list(TITLES))
    cores = len(os.sched_getaffinity(0))
    options.threads = options.threads or sorted({min(n, cores) for n in ((2,) if options.shape else (1, 2))})
    return options


def main():
    arguments = parse()
    plan = Plan(arguments)
    now = datetime.datetime.now(datetime.timezone.utc)
    models = [random_model(shape) for shape in arguments.shape] if arguments.shape else [arguments.model.resolve()]
    result = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": machine.commit(arguments.binaries),
              "command": result_file.command_line("./dev bench cpu-peers", sys.argv[1:]), "machine": machine.describe(),
              "model": ", ".join(model.name for model in models), "dtype": "float32 and bfloat16", "cpu_peers": []}
    for model in models:
        runs = [Measurement(model, threads, plan, arguments).result() for threads in arguments.threads]
        result["cpu_peers"].append({"model": model.name, "is_random": bool(arguments.shape), "runs": runs})
        for run in runs:
            show(run)
    result_file.say_written(result_file.write(result, arguments.out, now.strftime("%Y-%m-%d-%H%M-cpu-peers")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Engines behind one interface, each in a process of its own so that no thread pool disturbs another's.

`run(batches, repeat, variant)` gives the seconds of each repetition, `rows(sequences)` their vectors, `ways(sequences)`
the arrangements worth trying, (description, batches, variant): for throughput, or for the latency of a single sequence.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from batches import in_order  # noqa: E402
from engine_process import EngineProcess  # noqa: E402
from peer_turns import Unavailable  # noqa: E402

EXPORT_OF = {"openvino": "openvino", "onnxruntime": "onnx", "ctranslate2": "ctranslate2", "sentence-transformers": None}
TITLES = {"bouquet": "Bouquet", "openvino": "OpenVINO", "onnxruntime": "ONNX Runtime", "ctranslate2": "CTranslate2",
          "sentence-transformers": "sentence-transformers"}
PEER_BATCHES = (1, 8, 32)
STEP_TOKENS = (256, 1024)


class ProcessFigures:
    """What the kernel tells about the process `pid`."""

    def __init__(self, pid):
        self._folder = Path(f"/proc/{pid}")

    def cpu_seconds(self):
        """Of all its threads, to the nanosecond; of those that ended, nothing."""
        spent = 0
        for task in (self._folder / "task").iterdir():
            try:
                spent += int((task / "schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
        return spent / 1e9

    def resident_mb(self):
        for line in (self._folder / "status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1e3
        return 0.0


class TimedBouquet:
    """bench/engine_timing.cc. Any lengths in one step, nothing is padded."""
    name = "bouquet"
    variants = ("one",)

    def __init__(self, binaries, model, dtype, threads):
        start = time.perf_counter()
        self.dtype = dtype
        self._engine = EngineProcess(binaries / "engine_timing", model, threads=threads, dtype=dtype)
        self.ready_seconds = time.perf_counter() - start
        self.figures = ProcessFigures(self._engine.pid)
        self.version = self._engine.facts["numerics"]

    def run(self, batches, repeat, _):
        return self._engine.times(batches, repeat)

    def rows(self, sequences):
        return self._engine.rows([[ids] for ids in sequences])

    def ways(self, sequences):
        if len(sequences) == 1:
            return [("any length", [sequences], "one")]
        return [(f"steps of {size} tokens", in_order(sequences, size), "one") for size in STEP_TOKENS]

    def close(self):
        self._engine.close()


class TimedPeer:
    """bench/peer_process.py. Sequences sorted by length, so that little is padded."""

    def __init__(self, name, python, model, exports, dtype, threads):
        start = time.perf_counter()
        self.name, self.dtype = name, dtype
        self._errors = tempfile.TemporaryFile("w+")
        # OpenMP threads that wait spin for 10 ms, longer than any gap within a run, and not into the next one's turn.
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "KMP_BLOCKTIME": "10", "CUDA_VISIBLE_DEVICES": "",
                       "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
        self._process = subprocess.Popen(
            [str(python), str(ROOT / "bench/peer_process.py"), name, str(model), str(exports), dtype, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment)
        facts = self._answer()
        self.ready_seconds = time.perf_counter() - start
        self.figures = ProcessFigures(self._process.pid)
        self.version, self.variants = facts["version"], facts["variants"]

    def run(self, batches, repeat, variant):
        return [us / 1e6 for us in self._ask(batches=batches, repeat=repeat, variant=variant)["us"]]

    def rows(self, sequences):
        return np.array(self._ask(rows=sequences)["rows"], np.float32)

    def ways(self, sequences):
        if len(sequences) == 1:
            return [(description, [sequences], variant) for description, variant in (
                ("any length", "one"), ("compiled for this length", "fixed")) if variant in self.variants]
        ordered = sorted(sequences, key=len)
        return [(f"batches of {size}" + (", streams" if variant == "streams" else ""),
                 [ordered[i:i + size] for i in range(0, len(ordered), size)], variant)
                for variant in self.variants if variant != "fixed" for size in PEER_BATCHES]

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _ask(self, **request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer tells why
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        code = self._process.wait()
        self._errors.seek(0)
        raise Unavailable(last_line(self._errors.read()) or f"ended with exit code {code}")


def last_line(text):
    """The reason that a process ended with, of which a result keeps so much."""
    lines = text.strip().splitlines()
    return lines[-1].strip()[:160] if lines else ""


def export(name, python, model, folder):
    """Where the peer finds the model in its own format, which is made there if need be."""
    kind = EXPORT_OF[name]
    return folder if kind is None else export_as(kind, python, model, folder)


def export_as(kind, python, model, folder):
    """A folder in a format of bench/peer_exports.py, made by `python` if need be."""
    done = subprocess.run([str(python), str(ROOT / "bench/peer_exports.py"), kind, str(model), str(folder / kind)],
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"},
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"no {kind} of this model: {last_line(done.stderr)}")
    return folder / kind


class MachinePeak:
    """bench/machine_peak.cc: what the machine gives at this moment."""

    def __init__(self, binaries, threads, matrix_bytes):
        self._process = subprocess.Popen(
            [str(binaries / "machine_peak"), str(threads), str(max(1, round(matrix_bytes / 2**20)))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.has_bfloat16 = json.loads(self._process.stdout.readline())["bfloat16"]

    def measure(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)

"""Two engines behind one interface: `run(batches, repeat)` gives the seconds of each repetition, `first_row` a row."""
import pathlib
import sys
import time

import numpy as np
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from batches import in_order, padded  # noqa: E402
from engine_process import EngineProcess  # noqa: E402


class Bouquet:
    """The engine alone, in a process of its own (bench/engine_timing.cc)."""
    name = "bouquet"

    def __init__(self, binary, model, threads, dtype="float32"):
        self._engine = EngineProcess(binary, model, threads=threads, dtype=dtype)

    def run(self, batches, repeat):
        return self._engine.times(batches, repeat)

    def first_row(self, ids):
        return np.array(self._engine.ask([[ids]])["row"], np.float32)

    def arrange(self, sequences, size):
        """Batches of at most `size` tokens in order of arrival: lengths may differ, nothing is padded."""
        return in_order(sequences, size)

    sizes = (1024,)

    def close(self):
        self._engine.close()


class OnnxRuntime:
    """ONNX Runtime on the file of make_onnx.py, its graph optimisations on."""
    name = "onnxruntime"
    version = onnxruntime.__version__

    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(self, batches, repeat):
        fed = [padded(batch) for batch in batches]
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            for inputs in fed:
                self._session.run(None, inputs)
            seconds.append(time.perf_counter() - start)
        return seconds

    def first_row(self, ids):
        return self._session.run(None, padded([ids]))[0][0]

    def arrange(self, sequences, size):
        """Batches of `size` sequences, sorted by length so that little is padded."""
        ordered = sorted(sequences, key=len)
        return [ordered[i:i + size] for i in range(0, len(ordered), size)]

    sizes = (1, 8, 32)

    def close(self):
        pass

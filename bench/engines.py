"""Two engines behind one interface: `run(batches, repeat)` gives the seconds of each repetition, `first_row` a row."""
import json
import subprocess
import time

import numpy as np
import onnxruntime


class Bouquet:
    """The engine alone, in a process of its own (bench/engine_timing.cc)."""
    name = "bouquet"

    def __init__(self, binary, model, threads, dtype="float32"):
        self._process = subprocess.Popen([binary, model, str(threads), dtype], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def run(self, batches, repeat):
        return [us / 1e6 for us in self._ask(batches, repeat)["us"]]

    def first_row(self, ids):
        return np.array(self._ask([[ids]], 1)["row"], np.float32)

    def arrange(self, sequences, size):
        """Batches of at most `size` tokens in order of arrival: lengths may differ, nothing is padded."""
        batches, tokens = [[]], 0
        for ids in sequences:
            if batches[-1] and tokens + len(ids) > size:
                batches.append([])
                tokens = 0
            batches[-1].append(ids)
            tokens += len(ids)
        return batches

    sizes = (1024,)

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)

    def _ask(self, batches, repeat):
        self._process.stdin.write(json.dumps({"repeat": repeat, "batches": batches}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"bench: engine_timing ended with exit code {self._process.wait()}")
        return json.loads(line)


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
        fed = [self._pad(batch) for batch in batches]
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            for inputs in fed:
                self._session.run(None, inputs)
            seconds.append(time.perf_counter() - start)
        return seconds

    def first_row(self, ids):
        return self._session.run(None, self._pad([ids]))[0][0]

    def arrange(self, sequences, size):
        """Batches of `size` sequences, sorted by length so that little is padded."""
        ordered = sorted(sequences, key=len)
        return [ordered[i:i + size] for i in range(0, len(ordered), size)]

    sizes = (1, 8, 32)

    def close(self):
        pass

    @staticmethod
    def _pad(batch):
        length = max(map(len, batch))
        ids = np.zeros((len(batch), length), np.int64)
        mask = np.zeros_like(ids)
        for row, sequence in enumerate(batch):
            ids[row, :len(sequence)] = sequence
            mask[row, :len(sequence)] = 1
        return {"input_ids": ids, "attention_mask": mask}

#!/usr/bin/env python3
"""One peer in a process of its own, asked with batches of token ids over standard input (as bench/engine_timing.cc is).

  peer_process.py ENGINE MODEL_FOLDER EXPORT_FOLDER DTYPE THREADS
  ENGINE: openvino, onnxruntime, ctranslate2, sentence-transformers; DTYPE: float32, bfloat16

A line first: {"version": V, "load_seconds": S, "variants": [NAME, ...]}. Then one JSON object a line:
  {"batches": [[[ids], ...], ...], "repeat": R, "variant": NAME}   answer {"us": [R times]}
  {"rows": [[ids], ...]}                                           answer {"rows": [[values], ...]}
All batches are run R times in the way NAME: "one" after the other with all threads; "streams", as many batches at once as
there are threads; "fixed", as "one" by a graph compiled for the shape of the first batch, which must be that of all.
Padding and arrays are made before the clock starts. Ends with exit code 1 and the
reason as the last line of standard error when the engine cannot be loaded.
"""
import concurrent.futures
import functools
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from batches import padded


class OpenVino:
    """LATENCY for one batch after the other, THROUGHPUT with a stream a thread for several at once.

    Threads are not pinned: a pinned one waits for whoever else is on its core, and a quiet machine shows no difference.
    """

    def __init__(self, _, exports, dtype, threads):
        import openvino
        self.version = openvino.__version__.split("-")[0]
        self._openvino, self._threads = openvino, threads
        self._core = openvino.Core()
        self._model = self._core.read_model(exports / "model.xml")
        self._properties = {"INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[dtype],
                            "INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}
        self._request = self._compile(self._model, PERFORMANCE_HINT="LATENCY").create_infer_request()
        self._fixed_shape, self._fixed_request = None, None
        self.variants = {"one": self._one, "fixed": self._fixed} | ({"streams": self._streams} if threads > 1 else {})

    prepare = staticmethod(padded)

    def rows(self, inputs):
        return next(iter(self._request.infer(inputs, share_inputs=True).values()))

    def _compile(self, model, **more):
        return self._core.compile_model(model, "CPU", self._properties | more)

    def _one(self, prepared):
        for inputs in prepared:
            self._request.infer(inputs, share_inputs=True, share_outputs=True)

    def _fixed(self, prepared):
        shape = list(prepared[0]["input_ids"].shape)
        if shape != self._fixed_shape:
            self._fixed_request = None  # one is kept
            model = self._model.clone()
            model.reshape({"input_ids": shape, "attention_mask": shape})
            self._fixed_request = self._compile(model, PERFORMANCE_HINT="LATENCY").create_infer_request()
            self._fixed_shape = shape
        for inputs in prepared:
            self._fixed_request.infer(inputs, share_inputs=True, share_outputs=True)

    @functools.cached_property
    def _queue(self):
        # Loaded when it is asked for, so that the memory of the other way is its own.
        return self._openvino.AsyncInferQueue(self._compile(self._model, PERFORMANCE_HINT="THROUGHPUT",
                                                                 NUM_STREAMS=self._threads))

    def _streams(self, prepared):
        for inputs in prepared:
            self._queue.start_async(inputs, share_inputs=True)
        self._queue.wait_all()


class OnnxRuntime:
    """All graph optimisations; several batches at once by one session for a thread each."""

    def __init__(self, _, exports, __, threads):
        import onnxruntime
        self.version = onnxruntime.__version__
        self._onnxruntime, self._path, self._threads = onnxruntime, str(exports / "model.onnx"), threads
        self._session = self._open(threads)
        self.variants = {"one": self._one} | ({"streams": self._streams} if threads > 1 else {})

    prepare = staticmethod(padded)

    def rows(self, inputs):
        return self._session.run(None, inputs)[0]

    def _open(self, threads):
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = self._onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        return self._onnxruntime.InferenceSession(self._path, options, providers=["CPUExecutionProvider"])

    def _one(self, prepared):
        for inputs in prepared:
            self._session.run(None, inputs)

    @functools.cached_property
    def _alone(self):
        return self._open(1), concurrent.futures.ThreadPoolExecutor(self._threads)

    def _streams(self, prepared):
        session, pool = self._alone
        list(pool.map(lambda inputs: session.run(None, inputs), prepared))


class CTranslate2:
    """The encoder; mean or first token, and unit length, in numpy."""

    def __init__(self, model, exports, _, threads):
        import ctranslate2
        self.version = ctranslate2.__version__
        self._ctranslate2, self._path, self._threads = ctranslate2, str(exports), threads
        modules = json.loads((Path(model) / "modules.json").read_text())
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        self._mode = pooling_mode(Path(model) / modules[1]["path"] / "config.json")
        if kinds != ["Transformer", "Pooling", "Normalize"] or self._mode not in ("mean", "cls"):
            raise ValueError(f"{', '.join(kinds)} with {self._mode} pooling is not written here")
        self._encoder = self._open(1, threads)
        self.variants = {"one": self._one} | ({"streams": self._streams} if threads > 1 else {})

    @staticmethod
    def prepare(batch):
        # Lists of ids: it pads by itself.
        return batch

    def rows(self, batch):
        return self._pooled(self._encoder, batch)

    def _open(self, workers, threads):
        return self._ctranslate2.Encoder(self._path, device="cpu", compute_type="float32", inter_threads=workers,
                                         intra_threads=threads)

    def _pooled(self, encoder, batch):
        hidden = np.asarray(encoder.forward_batch(batch).last_hidden_state)
        rows = np.stack([hidden[i, :len(ids)].sum(0) if self._mode == "mean" else hidden[i, 0]
                         for i, ids in enumerate(batch)])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _one(self, prepared):
        for batch in prepared:
            self._pooled(self._encoder, batch)

    @functools.cached_property
    def _alone(self):
        return self._open(self._threads, 1), concurrent.futures.ThreadPoolExecutor(self._threads)

    def _streams(self, prepared):
        encoder, pool = self._alone
        list(pool.map(lambda batch: self._pooled(encoder, batch), prepared))


class SentenceTransformers:
    """The reference library on torch, from ids on: its tokenizer is not what is compared."""

    def __init__(self, model, _, dtype, threads):
        import sentence_transformers
        import torch
        torch.set_num_threads(threads)
        self.version = f"{sentence_transformers.__version__} on torch {torch.__version__.partition('+')[0]}"
        self._torch = torch
        self._model = sentence_transformers.SentenceTransformer(
            str(model), device="cpu", model_kwargs={"dtype": getattr(torch, dtype)}).eval()
        self.variants = {"one": self._one}

    def prepare(self, batch):
        return {name: self._torch.from_numpy(array) for name, array in padded(batch).items()}

    def rows(self, inputs):
        with self._torch.inference_mode():
            return self._model(dict(inputs))["sentence_embedding"].float().numpy()

    def _one(self, prepared):
        for inputs in prepared:
            self.rows(inputs)


def pooling_mode(path):
    """"mean", "cls", "lasttoken", …, of either form of the file."""
    config = json.loads(path.read_text())
    if "pooling_mode" in config:
        modes = config["pooling_mode"]
        return "+".join(modes) if isinstance(modes, list) else modes
    names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_lasttoken": "lasttoken"}
    return "+".join(names.get(name, name) for name, on in config.items() if name.startswith("pooling_mode_") and on is True)


ENGINES = {"openvino": OpenVino, "onnxruntime": OnnxRuntime, "ctranslate2": CTranslate2,
           "sentence-transformers": SentenceTransformers}


def answer(engine, request):
    if "rows" in request:
        return {"rows": [engine.rows(engine.prepare([ids]))[0].astype(float).tolist() for ids in request["rows"]]}
    run = engine.variants[request["variant"]]
    prepared = [engine.prepare(batch) for batch in request["batches"]]
    microseconds = []
    for _ in range(request["repeat"]):
        start = time.perf_counter()
        run(prepared)
        microseconds.append((time.perf_counter() - start) * 1e6)
    return {"us": microseconds}


def main(arguments):
    if len(arguments) != 5 or arguments[0] not in ENGINES:
        raise SystemExit(__doc__)
    # Libraries print where they like; answers have the pipe to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, model, exports, dtype, threads = arguments
    start = time.perf_counter()
    try:
        engine = ENGINES[name](Path(model), Path(exports), dtype, int(threads))
    except Exception as error:  # a library of others: whatever it raises, this peer is left out
        raise SystemExit(f"{type(error).__name__}: {error}") from error
    facts = {"version": engine.version, "load_seconds": time.perf_counter() - start, "variants": list(engine.variants)}
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engine, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Stands in for the Python that runs peers: called with the same arguments, answers by our own engine.

For bench/peer_process.py: sentence-transformers and onnxruntime answer with Bouquet's rows in float32, openvino with
other rows, ctranslate2 cannot be loaded. For bench/peer_exports.py: does nothing. For bench/quality_reference.py: rows
of `bouquet embed`, moved by STAND_IN_NOISE. For Infinity: `bouquet serve` of the folder STAND_IN_ONNX or STAND_IN_TORCH.
For `-c`: succeeds. Needs BOUQUET_BUILD, a build folder.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

BUILD = pathlib.Path(os.environ["BOUQUET_BUILD"])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from engine_process import EngineProcess  # noqa: E402


def be_peer(name, model, threads):
    if name == "ctranslate2":
        raise SystemExit("ValueError: no such model here")
    engine = EngineProcess(BUILD / "engine_timing", model, threads=threads, dtype="float32")
    print(json.dumps({"version": "0.1", "variants": ["one"]}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "rows" in request:
            rows = engine.rows([[ids] for ids in request["rows"]])
            answer = {"rows": (rows[:, ::-1] if name == "openvino" else rows).tolist()}
        else:
            answer = {"us": [1e6 * s for s in engine.times(request["batches"], request["repeat"])]}
        print(json.dumps(answer), flush=True)
    engine.close()


def be_reference(model, texts, output, part, parts):
    lines = pathlib.Path(texts).read_text().splitlines(keepends=True)[part::parts]
    with tempfile.TemporaryDirectory() as folder:
        share, rows = pathlib.Path(folder, "share.jsonl"), pathlib.Path(folder, "rows.npy")
        share.write_text("".join(lines))
        subprocess.run([BUILD / "bouquet", "embed", model, share, "--format", "jsonl", "--output", rows, "--quiet", "true"],
                       check=True)
        found = np.load(rows)
    noise = float(os.environ.get("STAND_IN_NOISE", "0"))
    np.save(output, found + noise * np.random.default_rng(1).standard_normal(found.shape, np.float32))


def be_infinity(arguments):
    value = dict(zip(arguments, arguments[1:]))
    model = os.environ[{"optimum": "STAND_IN_ONNX", "torch": "STAND_IN_TORCH"}[value["--engine"]]]
    os.execv(BUILD / "bouquet", ["bouquet", "serve", model, "--port", value["--port"], "--log-level", "warning"])


def main(script, *arguments):
    if script.endswith("peer_process.py"):
        be_peer(arguments[0], arguments[1], int(arguments[4]))
    elif script.endswith("quality_reference.py"):
        be_reference(*arguments[:3], int(arguments[3]), int(arguments[4]))
    elif script == "-m":
        be_infinity(arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Loads a server with wrk: a closed loop of one request under way on each connection."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "post_bodies.lua"


class LoadFailed(Exception):
    """Some requests were not answered as they should be."""


def write_texts(inputs):
    """A file of request bodies, one a line: for each input, a text or a list of texts, one."""
    bodies = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
    for value in inputs:
        bodies.write(json.dumps({"input": value, "encoding_format": "base64"}) + "\n")
    bodies.flush()
    return bodies


def load(port, bodies, connections, seconds, core=None):
    """What wrk, on `core` alone if that is given, gets through. LoadFailed when a single request failed."""
    pinned = ["taskset", "-c", core] if core is not None else []
    run = subprocess.run([*pinned, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s",
                          str(SCRIPT), f"http://127.0.0.1:{port}/v1/embeddings"],
                         env={**os.environ, "BODIES": bodies}, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise LoadFailed(f"wrk: {(run.stderr or run.stdout).strip()[-160:]}")
    answer = json.loads(run.stdout.strip().splitlines()[-1])
    if answer["failed"]:
        raise LoadFailed(f"{answer['failed']} requests failed with {connections} connections")
    return answer

"""What loads a server, and how its vectors are asked for. All figures are of a closed loop, with one request after the
other on each connection.

A load is called with a port and seconds, and gives {"requests", "per_s", "p50_ms", "p99_ms"}; LoadFailed when a single
request was not answered as it should be, NothingAnswered when none was answered yet.
"""
import base64
import http.client
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import wrk
from timed_engines import last_line
from wrk import LoadFailed

ANSWER_SECONDS = 120


class NothingAnswered(LoadFailed):
    """Not a single request was, within the time."""


class Wrk:
    """Reads status and length of answers, no more."""
    name = "wrk"

    def __init__(self, bodies, connections):
        self._bodies, self.connections = bodies, connections

    def __call__(self, port, seconds):
        found = wrk.load(port, self._bodies, self.connections, seconds)
        if not found["requests"]:
            raise NothingAnswered(f"no request was answered within {seconds} s")
        return {"requests": found["requests"], "per_s": found["requests"] / found["seconds"],
                "p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"]}


class BouquetBench:
    """`bouquet bench`, which decodes and checks every answer, and waits for the last."""
    name = "bouquet bench"

    def __init__(self, bouquet, model_name, texts, connections, batch=1):
        self._common = [str(bouquet), "bench"]
        self._suite = (["concurrency", "{url}", "--in-flight", str(connections)] if batch == 1 else
                       ["throughput", "{url}", "--processes", str(connections), "--batch", str(batch)])
        self._inputs = ["--inputs", "texts", "--texts", str(texts), "--model", model_name]
        self.connections = connections

    def __call__(self, port, seconds):
        suite = [part.replace("{url}", f"127.0.0.1:{port}") for part in self._suite]
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "result.json")
            done = subprocess.run([*self._common, *suite, *self._inputs, "--seconds", str(seconds), "--rounds", "1",
                                   "--warm-up-seconds", "0", "--quiet", "true", "--output", str(output)],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise LoadFailed(f"bouquet bench: {last_line(done.stderr)}")
            (found,) = json.loads(output.read_text())["rows"]
        if found["failed"]:
            count = sum(kind["count"] for kind in found["failed"].values())
            raise LoadFailed(f"{count} requests failed: {found['first_error']}")
        metrics = {name: found["metrics"][name]["median"] for name in ("requests_per_s", "p50_ms", "p99_ms")}
        return {"requests": found["ok"], "per_s": metrics.pop("requests_per_s"), **metrics}


def ask(port, texts, model_name):
    """The vectors of one request. LoadFailed: what the server said instead."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request("POST", "/v1/embeddings", headers={"Content-Type": "application/json"}, body=json.dumps(
            {"model": model_name, "input": texts, "encoding_format": "base64"}))
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise LoadFailed(f"no answer: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise LoadFailed(f"status {answer.status}: {body[:120].decode(errors='replace')}")
    data = sorted(json.loads(body)["data"], key=lambda entry: entry["index"])
    return np.array([row(entry["embedding"]) for entry in data])


def row(embedding):
    """Of base64, or of the list of numbers that some servers give all the same."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding), "<f4").astype(np.float64)
    return np.array(embedding, np.float64)

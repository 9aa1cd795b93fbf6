"""What the system tests share: a client of the gateway, and an inference server that can be killed."""
import base64
import http.client
import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from server_process import free_port  # noqa: E402

BINARY = os.environ["BOUQUET_BINARY"]
MODEL = os.environ.get("BOUQUET_DEMO_MODEL") or os.environ["BOUQUET_DEFAULT_MODEL"]


def require_model():
    if not pathlib.Path(MODEL, "model.safetensors").exists():
        if os.environ.get("BOUQUET_DATA_REQUIRED") == "1":
            raise AssertionError(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")
        raise unittest.SkipTest(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")


def post(port, path, body, timeout=60, headers=None):
    """Status and the answer's JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def embed(port, inputs):
    """Status, and rows of floats or the error's message."""
    status, answer = post(port, "/v1/embeddings", {"input": inputs, "encoding_format": "base64"})
    return status, rows_of(answer) if status == 200 else answer["error"]["message"]


def rows_of(answer):
    rows = [base64.b64decode(entry["embedding"]) for entry in answer["data"]]
    return [struct.unpack(f"<{len(row) // 4}f", row) for row in rows]


def embed_tei(port, inputs):
    """By the dialect that knows no limit of its own on the number of inputs."""
    status, answer = post(port, "/embed", {"inputs": inputs}, 300, {"x-request-timeout-ms": "290000"})
    if status != 200:
        raise AssertionError(answer)
    return answer


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def metric(port, name):
    """The sum over the series of that name."""
    lines = get(port, "/metrics")[1].splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + "{") or line.startswith(name + " "))


def distance(a, b):
    """1 - cosine."""
    return 1 - math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def link_model_folder(parent, without):
    """A folder of the model's name whose entries are links, but for those the caller writes itself."""
    folder = pathlib.Path(parent) / pathlib.Path(MODEL).name
    folder.mkdir()
    for entry in pathlib.Path(MODEL).resolve().iterdir():
        if entry.name not in without:
            (folder / entry.name).symlink_to(entry)
    return folder


class Tulip:
    """An inference server that can be stopped, killed and started again at the same address."""

    def __init__(self, model=MODEL):
        self.model = str(model)
        self.port = free_port()
        self.metrics_port = free_port()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BINARY, "tulip", self.model, "--listen", f"127.0.0.1:{self.port}", "--metrics-listen",
             f"127.0.0.1:{self.metrics_port}", "--threads", "1", "--max-queue-ms", "60000", "--log-level", "error"])

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

"""Questions about the whole program: short queries over HTTP, start, memory at rest, `bouquet embed` of a file."""
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tokenizers

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "demo"))
from package_index import read_descriptions  # noqa: E402

CONNECTIONS = (1, 16, 64)
WARM_UP_SECONDS, LOAD_SECONDS = 2, 8
NULL_TURNS, NULL_SECONDS = 3, 2
FILE_LINES = 2000
STARTS = 5


class ServerProcess:
    """A server on a free port; `command` has {port} in it. Ready when `path` is answered with 200."""

    def __init__(self, command, path="/health/ready"):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._path = path
        start = time.monotonic()
        self._process = subprocess.Popen([part.replace("{port}", str(self.port)) for part in command])
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() - start > 60:
                raise SystemExit(f"bench: {command[0]} did not become ready")
            time.sleep(0.002)
        self.ready_seconds = time.monotonic() - start

    def resident_mb(self):
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1e3
        raise SystemExit("bench: no VmRSS")

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=60)

    def _is_ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", self._path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def serve(bouquet, model):
    return ServerProcess([bouquet, "serve", model, "--port", "{port}", "--log-level", "warning"])


def write_bodies(texts):
    bodies = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
    for text in texts:
        bodies.write(json.dumps({"input": text, "encoding_format": "base64"}) + "\n")
    bodies.flush()
    return bodies


def texts_and_ids(model, count):
    """Names and descriptions of packages: short texts that every machine has; and their ids, by another tokenizer."""
    texts = [f"{p.name}: {p.text}" for p in read_descriptions()[:count]]
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(model) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    return texts, [tokenizer.encode(text).ids for text in texts]


def load(port, bodies, connections, seconds):
    run = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s",
                          str(ROOT / "bench/post_bodies.lua"), f"http://127.0.0.1:{port}/v1/embeddings"],
                         env={**os.environ, "BODIES": bodies}, capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout.strip().splitlines()[-1])
    if answer["failed"]:
        raise SystemExit(f"bench: {answer['failed']} requests failed with {connections} connections")
    return answer


def engine_alone(engine, ids):
    """The engine's rate on the same texts, full batches; and its time for one of them, the median over the texts."""
    batches = engine.arrange(ids, engine.sizes[0])
    engine.run(batches, 1)
    rate = len(ids) / statistics.median(engine.run(batches, 5))
    one_ms = statistics.median(min(engine.run([[i]], 5)) for i in ids[:64]) * 1e3
    return rate, one_ms


def http_queries(bouquet, model, make_engine, threads):
    """One short query a request, at several numbers of connections, against the engine on the same texts."""
    texts, ids = texts_and_ids(model, 512)
    engine = make_engine(threads)
    rate, one_ms = engine_alone(engine, ids)
    engine.close()
    rows = []
    server = serve(bouquet, model)
    with write_bodies(texts) as bodies:
        for connections in CONNECTIONS:
            load(server.port, bodies.name, connections, WARM_UP_SECONDS)
            answer = load(server.port, bodies.name, connections, LOAD_SECONDS)
            per_second = answer["requests"] / answer["seconds"]
            rows.append({"connections": connections, "per_s": per_second, "p50_ms": answer["p50_ms"],
                         "p99_ms": answer["p99_ms"], "of_engine_rate": per_second / rate})
            print(f"  {connections:2} connections: {per_second:.0f}/s, p50 {answer['p50_ms']:.2f} ms, "
                  f"p99 {answer['p99_ms']:.2f} ms, {per_second / rate:.2f} of the engine's rate", flush=True)
    server.stop()
    return {"engine_per_s": rate, "engine_one_ms": one_ms, "threads": threads, "rows": rows}


def gateway_alone(null_service, echo, model):
    """Ivy without an engine against a bare Beast echo, one server thread each; they take turns."""
    texts, _ = texts_and_ids(model, 512)
    ours = ServerProcess([null_service, model, "{port}"])
    bare = ServerProcess([echo, "{port}"])
    rows = []
    with write_bodies(texts) as bodies:
        for connections in CONNECTIONS:
            turns = []
            for _ in range(NULL_TURNS):
                turns.append([load(server.port, bodies.name, connections, NULL_SECONDS) for server in (ours, bare)])
            ours_per_s, bare_per_s = (statistics.median(t[i]["requests"] / t[i]["seconds"] for t in turns)
                                      for i in (0, 1))
            rows.append({"connections": connections, "per_s": ours_per_s, "echo_per_s": bare_per_s,
                         "p50_ms": statistics.median(t[0]["p50_ms"] for t in turns),
                         "ratio": statistics.median((a["requests"] / a["seconds"]) / (b["requests"] / b["seconds"])
                                                    for a, b in turns)})
            print(f"  {connections:2} connections: {ours_per_s:.0f}/s, bare echo {bare_per_s:.0f}/s, "
                  f"{rows[-1]['ratio']:.2f} x", flush=True)
    ours.stop()
    bare.stop()
    return rows


def start_and_memory(bouquet, model):
    """Seconds from start to ready (median of some starts); resident memory a second later, before any request."""
    ready, resident = [], []
    for _ in range(STARTS):
        server = serve(bouquet, model)
        ready.append(server.ready_seconds)
        time.sleep(1)
        resident.append(server.resident_mb())
        if server.stop() != 0:
            raise SystemExit("bench: the server did not end with exit code 0")
    weights = sum(f.stat().st_size for f in Path(model).glob("*.safetensors")) / 1e6
    row = {"ready_s": statistics.median(ready), "resident_mb": statistics.median(resident), "weights_mb": weights}
    print(f"  ready after {row['ready_s']:.2f} s, {row['resident_mb']:.0f} MB resident, weights {weights:.0f} MB",
          flush=True)
    return row


def embed_file(bouquet, model, make_engine, threads):
    """`bouquet embed` of a file, start and all, against the engine on the same lines. They take turns."""
    texts, ids = texts_and_ids(model, FILE_LINES)
    engine = make_engine(threads)
    batches = engine.arrange(ids, engine.sizes[0])
    whole, alone = [], []
    with tempfile.TemporaryDirectory() as folder:
        lines, out = Path(folder, "lines.txt"), Path(folder, "out.npy")
        lines.write_text("\n".join(texts) + "\n")
        for _ in range(5):
            alone.append(engine.run(batches, 1)[0])
            start = time.monotonic()
            subprocess.run([bouquet, "embed", model, str(lines), "--output", str(out), "--log-level", "warning"],
                           check=True, stderr=subprocess.DEVNULL)
            whole.append(time.monotonic() - start)
    engine.close()
    row = {"lines": len(texts), "tokens": sum(map(len, ids)), "threads": threads, "embed_s": statistics.median(whole),
           "engine_s": statistics.median(alone), "ratio": statistics.median(w / a for w, a in zip(whole, alone))}
    print(f"  {row['lines']} lines: {row['embed_s']:.2f} s, engine alone {row['engine_s']:.2f} s, "
          f"{row['ratio']:.2f} x", flush=True)
    return row

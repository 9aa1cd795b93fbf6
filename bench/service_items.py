"""Questions about the whole program: short queries over HTTP, start, memory at rest, `bouquet embed` of a file."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tokenizers

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "demo"), str(ROOT / "tools")]
from package_index import read_descriptions  # noqa: E402
from server_process import ServerProcess  # noqa: E402

CONNECTIONS = (1, 16, 64)
WARM_UP_SECONDS, LOAD_SECONDS = 2, 8
NULL_TURNS, NULL_SECONDS = 3, 2
ONE_TOKENS, ONE_TURNS, ONE_SECONDS, ONE_REPEATS = 10, 16, 1, 500
FILE_LINES = 2000
STARTS = 5


def write_texts(inputs):
    """A file of request bodies, one a line: for each input, a text or a list of texts, one."""
    bodies = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
    for value in inputs:
        bodies.write(json.dumps({"input": value, "encoding_format": "base64"}) + "\n")
    bodies.flush()
    return bodies


def texts_and_ids(model, count):
    """Names and descriptions of packages: short texts that every machine has; and their ids, by another tokenizer."""
    texts = [f"{p.name}: {p.text}" for p in read_descriptions()[:count]]
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(model) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    return texts, [tokenizer.encode(text).ids for text in texts]


def load(port, bodies, connections, seconds, core=None):
    """What wrk, on `core` alone if that is given, gets through."""
    pinned = ["taskset", "-c", core] if core is not None else []
    run = subprocess.run([*pinned, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s",
                          str(ROOT / "bench/post_bodies.lua"), f"http://127.0.0.1:{port}/v1/embeddings"],
                         env={**os.environ, "BODIES": bodies}, capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout.strip().splitlines()[-1])
    if answer["failed"]:
        raise SystemExit(f"bench: {answer['failed']} requests failed with {connections} connections")
    return answer


def engine_rate(engine, ids):
    """Texts per second of the engine alone in full batches."""
    batches = engine.arrange(ids, engine.sizes[0])
    engine.run(batches, 1)
    return len(ids) / statistics.median(engine.run(batches, 5))


def one_at_a_time(server, engine, text, ids):
    """One short text again and again over one connection, against the engine on the same ids. They take turns."""
    turns = []
    with write_texts([text]) as bodies:
        load(server.port, bodies.name, 1, WARM_UP_SECONDS)
        for _ in range(ONE_TURNS):
            alone = statistics.median(engine.run([[ids]], ONE_REPEATS)) * 1e3
            turns.append((alone, load(server.port, bodies.name, 1, ONE_SECONDS)["p50_ms"]))
    row = {"tokens": len(ids), "engine_p50_ms": statistics.median(t[0] for t in turns),
           "http_p50_ms": statistics.median(t[1] for t in turns),
           "added_ms": statistics.median(http - alone for alone, http in turns)}
    print(f"  one text of {row['tokens']} tokens: p50 {row['http_p50_ms']:.2f} ms, engine alone "
          f"{row['engine_p50_ms']:.2f} ms, {row['added_ms']:+.2f} ms", flush=True)
    return row


def http_queries(bouquet, model, make_engine, threads):
    """One short text a request, at several numbers of connections, against the engine on the same texts."""
    texts, ids = texts_and_ids(model, 512)
    engine = make_engine(threads)
    rate = engine_rate(engine, ids)
    rows = []
    server = ServerProcess.serving(bouquet, model)
    short = next(i for i, sequence in enumerate(ids) if len(sequence) == ONE_TOKENS)
    one = one_at_a_time(server, engine, texts[short], ids[short])
    engine.close()
    with write_texts(texts) as bodies:
        for connections in CONNECTIONS:
            load(server.port, bodies.name, connections, WARM_UP_SECONDS)
            answer = load(server.port, bodies.name, connections, LOAD_SECONDS)
            per_second = answer["requests"] / answer["seconds"]
            rows.append({"connections": connections, "per_s": per_second, "p50_ms": answer["p50_ms"],
                         "p99_ms": answer["p99_ms"], "of_engine_rate": per_second / rate})
            print(f"  {connections:2} connections: {per_second:.0f}/s, p50 {answer['p50_ms']:.2f} ms, "
                  f"p99 {answer['p99_ms']:.2f} ms, {per_second / rate:.2f} of the engine's rate", flush=True)
    server.stop()
    return {"engine_per_s": rate, "threads": threads, "one": one, "rows": rows}


def gateway_alone(null_service, echo, model):
    """Ivy without an engine against a bare Beast echo, one server thread each; they take turns."""
    texts, _ = texts_and_ids(model, 512)
    ours = ServerProcess([null_service, model, "{port}"])
    bare = ServerProcess([echo, "{port}"])
    rows = []
    with write_texts(texts) as bodies:
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
        server = ServerProcess.serving(bouquet, model)
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

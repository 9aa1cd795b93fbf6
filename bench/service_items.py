"""Questions about the whole program: the gateway alone, `bouquet embed` of a file."""
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from batches import in_order  # noqa: E402
from engine_process import EngineProcess  # noqa: E402
from http_texts import short_texts, token_ids  # noqa: E402
from server_process import ServerProcess  # noqa: E402
from wrk import load, write_texts  # noqa: E402

CONNECTIONS = (1, 16, 64)
TEXTS = 512
NULL_TURNS, NULL_SECONDS = 3, 2
FILE_LINES, STEP_TOKENS = 2000, 1024


def gateway_alone(null_service, echo, model):
    """Ivy without an engine against a bare Beast echo, one server thread each; they take turns."""
    texts = short_texts(TEXTS)
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


def embed_file(binaries, model):
    """`bouquet embed` of a file, start and all, against the engine on the same lines. They take turns."""
    texts = short_texts(FILE_LINES)
    ids = token_ids(binaries / "bouquet", model, texts)
    threads = len(os.sched_getaffinity(0))
    engine = EngineProcess(binaries / "engine_timing", model, threads=threads, dtype="float32")
    batches = in_order(ids, STEP_TOKENS)
    whole, alone = [], []
    with tempfile.TemporaryDirectory() as folder:
        lines, out = Path(folder, "lines.txt"), Path(folder, "out.npy")
        lines.write_text("\n".join(texts) + "\n")
        for _ in range(5):
            alone.append(engine.times(batches)[0])
            start = time.monotonic()
            subprocess.run([binaries / "bouquet", "embed", model, str(lines), "--output", str(out), "--log-level", "warning"],
                           check=True, stderr=subprocess.DEVNULL)
            whole.append(time.monotonic() - start)
    engine.close()
    row = {"lines": len(texts), "tokens": sum(map(len, ids)), "threads": threads, "embed_s": statistics.median(whole),
           "engine_s": statistics.median(alone), "ratio": statistics.median(w / a for w, a in zip(whole, alone))}
    print(f"  {row['lines']} lines: {row['embed_s']:.2f} s, engine alone {row['engine_s']:.2f} s, "
          f"{row['ratio']:.2f} x", flush=True)
    return row

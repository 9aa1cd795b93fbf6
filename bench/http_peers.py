#!/usr/bin/env python3
"""`./dev bench http-peers`: Bouquet beside Infinity and llama-server over HTTP, on the same model, texts and cores.

Each server runs in its own turns only: all are started, and whoever is not loaded is stopped by the kernel meanwhile, so
that it takes nothing from the others. One short text a request over 1, 16 and 64 connections, by wrk and by `bouquet
bench`; 32 passages of up to 128 tokens a request, two requests under way, by `bouquet bench`. Closed loops; the generator
shares the cores. The engine alone on the same short texts, in full batches, has a turn in each round too, and one short
text again and again is compared with the engine's time for it, bare and behind a socket that adds nothing. Vectors are
compared with the reference library in float32 first: a server beyond 1 - cosine of 1e-5 gets no times. A server that cannot
be had is left out, and why is said. Writes
bench/results/DATE-http-peers.json.

Infinity is installed below build/ from a pinned list. llama-server is what --llama-server or BOUQUET_LLAMA_SERVER names,
else what `./dev setup --llama-server` built, else what PATH has; its GGUF file is made here.

  ./dev setup --llama-server && ./dev bench http-peers
  ./dev bench http-peers --quick
  ./dev bench http-peers --servers bouquet infinity-onnx
"""
import argparse
import contextlib
import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import numpy as np

    import http_texts
    import machine
    import result_file
    import wrk
    from batches import in_order
    from cosine import largest_distance
    from engine_process import EngineProcess
    from http_loads import BouquetBench, NothingAnswered, Wrk, ask
    from http_servers import TITLES, PausedServer, bare_socket, launch, start_and_rest
    from peer_turns import Unavailable
    from timed_engines import last_line
    from wrk import LoadFailed
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

GATE = 1e-5  # 1 - cosine to the reference library in float32
TEXTS, PASSAGES = 512, 64
BATCH, PASSAGE_TOKENS, BATCH_CLIENTS = 32, 128, 2
STEP_TOKENS = 1024
ONE_TOKENS = 10
SPREAD_REPEATS = 4
WARM_UP_SECONDS = 1
OURS = TITLES["bouquet"]


class Plan:
    """How much of everything: of the whole run, or of a trial of the script."""

    def __init__(self, quick):
        self.connections = (1, 16) if quick else (1, 16, 64)
        self.starts = 1 if quick else 3
        self.wrk_rounds, self.bench_rounds, self.batch_rounds = (1, 1, 1) if quick else (5, 3, 3)
        self.seconds, self.batch_seconds = (1, 2) if quick else (4, 8)
        self.one_turns, self.one_repeats = (2, 50) if quick else (16, 500)


class Inputs:
    """Texts, their ids and the files that loads read; `folder` is where these are written."""

    def __init__(self, bouquet, model, folder):
        texts = http_texts.short_texts(8 * TEXTS)
        ids = http_texts.token_ids(bouquet, model, texts)
        self.texts, self.ids = texts[:TEXTS], ids[:TEXTS]
        self.passages = http_texts.passages(texts, list(map(len, ids)), PASSAGES, PASSAGE_TOKENS)
        self.passage_tokens = statistics.mean(map(len, http_texts.token_ids(bouquet, model, self.passages)))
        self.checked = self.texts[:BATCH] + self.passages[:BATCH]
        self.texts_file, self.passages_file, self.bodies = (Path(folder, name) for name in ("texts", "passages", "bodies"))
        self.texts_file.write_text("\n".join(self.texts) + "\n")
        self.passages_file.write_text("\n".join(self.passages) + "\n")
        with wrk.write_texts(self.texts) as bodies:
            self.bodies.write_text(Path(bodies.name).read_text())


def reference_rows(inputs, model, arguments, folder):
    """(where they are from, rows of the checked texts): of the reference library, else of `bouquet embed`."""
    texts, rows = Path(folder, "checked.jsonl"), Path(folder, "rows.npy")
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in inputs.checked))
    sources = {
        "sentence-transformers float32": [arguments.python, ROOT / "bench/quality_reference.py", model, texts, rows, 0, 1],
        "bouquet embed": [arguments.binaries / "bouquet", "embed", model, texts, "--format", "jsonl", "--dtype", "float32",
                          "--output", rows, "--quiet", "true"]}
    for name, command in sources.items():
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                                  env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"})
            why = last_line(done.stderr)
        except OSError as error:
            done, why = None, error.strerror
        if done is not None and done.returncode == 0:
            return name, np.load(rows)
        print(f"  no reference: {name}: {why}", flush=True)
    raise SystemExit("bench: nothing to compare vectors with")


def distance_of(server, inputs, wanted, model_name):
    """The largest 1 - cosine: of short texts, each in a request of its own, and of passages in one request."""
    alone = [ask(server.port, [text], model_name) for text in inputs.checked[:BATCH]]
    together = ask(server.port, inputs.checked[BATCH:], model_name)
    return max(largest_distance(np.concatenate(alone), wanted[:BATCH]), largest_distance(together, wanted[BATCH:]))


def one_turn(server, load, seconds):
    """What the load got through, with the server's processor time of a request. It runs for this turn only."""
    server.resume()
    try:
        with contextlib.suppress(NothingAnswered):
            load(server.port, WARM_UP_SECONDS)
        before = server.cpu_seconds()
        figures = load(server.port, seconds)
        figures["cpu_ms"] = 1e3 * (server.cpu_seconds() - before) / figures.pop("requests")
        return figures
    finally:
        server.pause()


def take_turns(servers, load, rounds, seconds=1, between=None):
    """{name: [figures of each round]}, {name: why it failed}, [what `between()` gave in each round]. Each begins in turn."""
    servers, taken, failed, other = list(servers), {}, {}, []
    for turn in range(rounds):
        if between:
            other.append(between())
        first = turn % max(1, len(servers))
        for server in servers[first:] + servers[:first]:
            try:
                taken.setdefault(server.name, []).append(one_turn(server, load, seconds))
            except (LoadFailed, OSError) as why:
                failed[server.name] = str(why)
                taken.pop(server.name, None)
                servers.remove(server)
    return taken, failed, other


def ratios(taken, ours=OURS):
    """{peer: how many times as much we get through, by wall and by processor time}: medians over turns."""
    if ours not in taken:
        return {}
    return {peer: {"ratio": statistics.median(a["per_s"] / b["per_s"] for a, b in zip(taken[ours], turns)),
                   "cpu_ratio": statistics.median(b["cpu_ms"] / a["cpu_ms"] if a["cpu_ms"] else 0.0
                                                  for a, b in zip(taken[ours], turns))}
            for peer, turns in taken.items() if peer != ours}


def summary(turns):
    """Medians of one server's turns."""
    return {**{name: statistics.median(turn[name] for turn in turns) for name in ("per_s", "p50_ms", "p99_ms", "cpu_ms")},
            "p99_of_p50": statistics.median(turn["p99_ms"] / turn["p50_ms"] for turn in turns),
            "turns_per_s": [round(turn["per_s"], 2) for turn in turns]}


def cell(load, texts, taken, failed, engine_rates):
    """One row of a result: a load, and what each server made of it."""
    found = ratios(taken)
    row = {"load": load.name, "connections": load.connections, "texts": texts,
           "servers": {name: summary(turns) for name, turns in taken.items()}, "failed": failed, "ratios": found,
           "best_peer": min(found, key=lambda peer: found[peer]["ratio"]) if found else None}
    if engine_rates:
        row["engine_per_s"] = statistics.median(engine_rates)
        if OURS in taken:
            row["of_engine_rate"] = statistics.median(t["per_s"] / rate for t, rate in zip(taken[OURS], engine_rates))
    return row


def show(row):
    print(f"  {row['load']}, {row['connections']} connection(s), {row['texts']} text(s) a request", flush=True)
    for name, found in row["servers"].items():
        best = row["ratios"].get(name)
        print(f"    {name:24} {found['per_s']:8.2f}/s, p50 {found['p50_ms']:8.2f} ms, p99 {found['p99_ms']:8.2f} ms "
              f"({found['p99_of_p50']:.2f} x), {found['cpu_ms']:7.2f} ms of processor each"
              + (f", Bouquet {best['ratio']:.2f} x" if best else "")
              + (f", {row['of_engine_rate']:.2f} of the engine's rate" if name == OURS and "of_engine_rate" in row else ""),
              flush=True)
    for name, why in row["failed"].items():
        print(f"    {name:24} failed: {why}", flush=True)


class Measurement:
    """Of one model folder: the servers that are up, and what was found."""

    def __init__(self, arguments, plan, folder, stack):
        self._arguments, self._plan, self._stack = arguments, plan, stack
        self._model, self._bouquet = arguments.model.resolve(), arguments.binaries / "bouquet"
        self._inputs = Inputs(self._bouquet, self._model, folder)
        self._reference = reference_rows(self._inputs, self._model, arguments, folder)
        self._engine = stack.enter_context(EngineProcess(
            arguments.binaries / "engine_timing", self._model, threads=len(os.sched_getaffinity(0)), dtype="float32"))
        self._batches = in_order(self._inputs.ids, STEP_TOKENS)
        self._servers, self._facts, self._left_out = [], {}, {}

    def result(self):
        for name in self._arguments.servers:
            self._add(name)
        rows = self._rows()
        one = self._one_at_a_time()
        for server in self._servers:
            with contextlib.suppress(Unavailable):  # its failure stands in the rows
                self._facts[server.name]["resident_after_mb"] = server.resident_mb()
        weights = sum(file.stat().st_size for file in self._model.glob("*.safetensors"))
        return {"threads": len(os.sched_getaffinity(0)), "load_average": os.getloadavg()[0], "reference": self._reference[0],
                "turns": "a server is stopped while another has its turn", "weights_mb": weights / 1e6,
                "short_tokens": statistics.mean(map(len, self._inputs.ids)), "passage_tokens": self._inputs.passage_tokens,
                "left_out": self._left_out, "servers": self._facts, "one": one, "rows": rows}

    def _leave_out(self, title, why):
        self._left_out[title] = str(why)
        print(f"  left out: {title}: {why}", flush=True)

    def _add(self, name):
        title = TITLES[name]
        print(f"  {title}: starting", flush=True)
        try:
            start = launch(name, self._model, ROOT / "build/bench/peers" / self._model.name, self._arguments)
            server, facts = start_and_rest(start, self._plan.starts)
        except Unavailable as why:
            self._leave_out(title, why)
            return
        self._stack.callback(server.close)
        try:
            distance = distance_of(server, self._inputs, self._reference[1], self._model.name)
        except (LoadFailed, ValueError, KeyError) as why:
            self._leave_out(title, why)
            return
        finally:
            server.pause()
        self._facts[title] = {"version": start.version, "settings": start.settings, **facts, "one_minus_cosine": distance}
        print(f"  {title}: ready after {facts['ready_s']:.2f} s, {facts['resident_mb']:.0f} MB, 1 - cosine {distance:.1e}",
              flush=True)
        if not distance <= GATE:
            self._leave_out(title, f"vectors differ: 1 - cosine {distance:.1e}, at most {GATE:.0e}")
            return
        self._servers.append(server)

    def _engine_rate(self):
        """Texts a second of the engine alone in full batches."""
        return len(self._inputs.ids) / self._engine.times(self._batches)[0]

    def _rows(self):
        plan, inputs, name = self._plan, self._inputs, self._model.name
        self._engine_rate()  # warms up
        work = []
        for connections in plan.connections:
            work.append((Wrk(inputs.bodies, connections), 1, plan.wrk_rounds, plan.seconds, self._engine_rate))
            work.append((BouquetBench(self._bouquet, name, inputs.texts_file, connections), 1, plan.bench_rounds, plan.seconds,
                         None))
        work.append((BouquetBench(self._bouquet, name, inputs.passages_file, BATCH_CLIENTS, BATCH), BATCH, plan.batch_rounds,
                     plan.batch_seconds, None))
        rows = []
        for load, texts, rounds, seconds, between in work:
            rows.append(cell(load, texts, *take_turns(self._servers, load, rounds, seconds, between)))
            show(rows[-1])
        return rows

    def _one_at_a_time(self):
        """One short text again and again over one connection, the engine on the same ids, and the engine behind a bare
        socket, which is the least that sockets and the client cost. They take turns."""
        server = next((server for server in self._servers if server.name == OURS), None)
        if server is None:
            return None
        inputs, turns = self._inputs, []
        text, ids = min(zip(inputs.texts, inputs.ids), key=lambda pair: abs(len(pair[1]) - ONE_TOKENS))
        bare = PausedServer(bare_socket(self._model, self._arguments.binaries / "engine_echo", ids))
        with wrk.write_texts([text]) as bodies, contextlib.closing(bare):
            bare.pause()
            load = Wrk(bodies.name, 1)
            for _ in range(self._plan.one_turns):
                alone = statistics.median(self._engine.times([[ids]], self._plan.one_repeats)) * 1e3
                try:
                    turns.append((alone, one_turn(server, load, 1)["p50_ms"], one_turn(bare, load, 1)["p50_ms"]))
                except LoadFailed as why:
                    print(f"  one text again and again failed: {why}", flush=True)
                    return None
        alone, over_http, over_socket = (statistics.median(column) for column in zip(*turns))
        row = {"tokens": len(ids), "engine_p50_ms": alone, "http_p50_ms": over_http, "socket_p50_ms": over_socket,
               "added_ms": statistics.median(turn[1] - turn[0] for turn in turns),
               "socket_added_ms": statistics.median(turn[2] - turn[0] for turn in turns),
               "engine_p99_of_p50": self._engine_spread()}
        print(f"  one text of {len(ids)} tokens: p50 {over_http:.2f} ms, engine alone {alone:.2f} ms, {row['added_ms']:+.2f} ms; "
              f"a bare socket {row['socket_added_ms']:+.2f} ms; engine on each text alone, p99 {row['engine_p99_of_p50']:.2f} "
              "x p50", flush=True)
        return row

    def _engine_spread(self):
        """p99 / p50 of the engine's time for the short texts, one at a time: what their lengths alone make of it."""
        times = sorted(time for ids in self._inputs.ids for time in self._engine.times([[ids]], SPREAD_REPEATS))
        return times[len(times) * 99 // 100] / statistics.median(times)


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench http-peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "build/models/all-MiniLM-L6-v2")
    parser.add_argument("--servers", nargs="+", choices=list(TITLES), default=list(TITLES), metavar="NAME",
                        help=", ".join(TITLES))
    parser.add_argument("--llama-server", metavar="FILE", help="the program")
    parser.add_argument("--quick", action="store_true", help="fewer connections, rounds and seconds, to try the script")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/bench", help="folder of what is measured")
    parser.add_argument("--python", type=Path, default=ROOT / "build/venv-infinity/bin/python", help="which runs Infinity")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results")
    options = parser.parse_args(arguments)
    if not (options.model / "config.json").exists():
        parser.error(f"no model folder: {options.model}")
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers, some of them paused, are not left behind
    arguments = parse()
    now = datetime.datetime.now(datetime.timezone.utc)
    result = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": machine.commit(arguments.binaries),
              "command": result_file.command_line("./dev bench http-peers", sys.argv[1:]), "machine": machine.describe(),
              "model": arguments.model.resolve().name, "dtype": "float32"}
    print(f"{result['model']} over HTTP; load average {result['machine']['load_average']:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        result["http_peers"] = Measurement(arguments, Plan(arguments.quick), folder, stack).result()
    result_file.say_written(result_file.write(result, arguments.out, now.strftime("%Y-%m-%d-%H%M-http-peers")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

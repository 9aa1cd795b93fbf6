"""Questions about Ivy and Tulip without, or beyond, the engine: the gRPC hop, where the time of a short query goes,
requests a second and core, and an overload of twice the capacity."""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from http_texts import short_texts  # noqa: E402
from server_process import ServerProcess, cpu_seconds  # noqa: E402
from wrk import load, write_texts  # noqa: E402

HOP_ROUNDS, HOP_MILLISECONDS = 11, 100
STAGE_ROUNDS, STAGE_REQUESTS = 5, 5000
NULL_ROUNDS, NULL_SECONDS = 3, 3
NULL_CONNECTIONS = (1, 16, 64)
BATCH = 32
TEXTS = 512
OVERLOAD_ROUNDS = 3
# Length of an input, and how many keep the engine's steps full: short queries, and passages.
OVERLOAD_SHAPES = ((16, 64), (128, 32))
CAPACITY_SECONDS = 5
STEADY_SECONDS = 15
CALM_SECONDS, BURST_SECONDS = 5, 8
# A queue of 2 s drains in 2 / (1 - this) seconds after the burst: any busier, and 3 s cannot be met.
CALM_SHARE = 0.25
MAX_QUEUE_SECONDS = 2

STAGES = ("client's send, wake-up, read, HTTP", "parse JSON, resolve", "tokenize, cut into chunks",
          "hand-over to Tulip's loop, form the step", "hand-over to the completer and back", "gather",
          "write JSON and head, send, client's wake-up")


def server_and_client_core():
    cores = sorted(os.sched_getaffinity(0))
    return str(cores[0]), str(cores[-1])


def median_of(rows, name):
    return statistics.median(row[name] for row in rows)


def grpc_hop(binary):
    """What the way over gRPC adds, as a multiple of a bare gRPC echo of the same sizes. They take turns."""
    run = subprocess.run([binary, str(HOP_ROUNDS), str(HOP_MILLISECONDS)], capture_output=True, text=True, check=True)
    cells = {}
    for line in run.stdout.splitlines():
        turn = json.loads(line)
        cells.setdefault((turn["transport"], turn["cell"], turn["under_way"], turn["pause_us"]), []).append(turn)
    rows = []
    for (transport, cell, under_way, pause_us), turns in cells.items():
        # Of a lone call its time counts, of many what each costs.
        what = "p50_us" if under_way == 1 else "each_us"
        ratios = [(t[f"grpc_{what}"] - t[f"in_process_{what}"]) / t[f"echo_{what}"] for t in turns]
        row = {"transport": transport, "cell": cell, "under_way": under_way, "pause_us": pause_us,
               "request_bytes": turns[0]["request_bytes"], "response_bytes": turns[0]["response_bytes"],
               "grpc_us": median_of(turns, f"grpc_{what}"), "in_process_us": median_of(turns, f"in_process_{what}"),
               "echo_us": median_of(turns, f"echo_{what}"), "ratio": statistics.median(ratios),
               "quartiles": statistics.quantiles(ratios)[::2]}
        rows.append(row)
        print(f"  {transport:4} {cell:9} {under_way:2} under way{', from rest' if pause_us else '':11}: "
              f"{row['grpc_us']:8.0f} us over gRPC, {row['in_process_us']:6.0f} in process, echo {row['echo_us']:6.0f}: "
              f"{row['ratio']:.2f} x", flush=True)
    return {"rounds": HOP_ROUNDS, "rows": rows}


@contextlib.contextmanager
def cores_awake():
    """Idle-priority loops on every core: they give way at once, but no core sleeps meanwhile."""
    def idle_priority():
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    loops = [subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"], preexec_fn=idle_priority)
             for core in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def ivy_stages(binary, echo, model):
    """Where the time of one short query goes, medians of some runs: with cores that sleep whenever nothing is to do, as
    they are left, and awake, as an engine at work keeps them."""
    bare = ServerProcess([echo, "{port}"])
    runs = {"awake": [], "asleep": []}
    for _ in range(STAGE_ROUNDS):
        for cores, some in runs.items():
            with cores_awake() if cores == "awake" else contextlib.nullcontext():
                run = subprocess.run([binary, model, str(bare.port), str(STAGE_REQUESTS)], capture_output=True,
                                     text=True, check=True)
            some.append(json.loads(run.stdout))
    bare.stop()
    awake = runs["awake"]
    result = {"requests": STAGE_ROUNDS * STAGE_REQUESTS,
              "alone_us": {name: statistics.median(run["alone_us"][name] for run in awake)
                           for name in awake[0]["alone_us"]},
              "stages": [{"stage": stage, **{cores: statistics.median(run["stages_us"][i] for run in some)
                                             for cores, some in runs.items()}} for i, stage in enumerate(STAGES)]}
    for name in ("total_us", "echo_us"):
        result[name] = {cores: median_of(some, name) for cores, some in runs.items()}
    for cores in runs:
        print(f"  cores {cores}: {result['total_us'][cores]:.0f} us from send to last byte, a bare echo "
              f"{result['echo_us'][cores]:.0f} us", flush=True)
    return result


@contextlib.contextmanager
def one_null_process(binaries, model, core):
    with ServerProcess(["taskset", "-c", core, str(binaries / "null_service"), model, "{port}", "whole"]) as server:
        yield server.port, [server]


@contextlib.contextmanager
def null_ivy_and_tulip(binaries, model, core):
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/tulip.sock"
        tulip = subprocess.Popen(["taskset", "-c", core, str(binaries / "null_tulip"), model, address])
        try:
            with ServerProcess(["taskset", "-c", core, str(binaries / "bouquet"), "ivy", model, "--replica", address,
                                "--port", "{port}", "--log-level", "warning"]) as server:
                yield server.port, [server, tulip]
        finally:
            tulip.terminate()
            tulip.wait()


def cpu_seconds_of(processes):
    return sum(cpu_seconds(process.pid) for process in processes)


def null_rates(binaries, model):
    """Requests a second that one core serves, all of it, when the engine costs nothing. wrk has the other core."""
    server_core, client_core = server_and_client_core()
    texts = short_texts(TEXTS)
    forms = {"one process": one_null_process, "Ivy and Tulip": null_ivy_and_tulip}
    batches = [texts[i:i + BATCH] for i in range(0, len(texts), BATCH)]
    rows = []
    with write_texts(texts) as singles, write_texts(batches) as batched:
        for form, start in forms.items():
            with start(binaries, model, server_core) as (port, processes):
                for inputs, bodies in ((1, singles), (BATCH, batched)):
                    for connections in NULL_CONNECTIONS:
                        load(port, bodies.name, connections, 1, client_core)
                        turns = []
                        for _ in range(NULL_ROUNDS):
                            before = cpu_seconds_of(processes)
                            answer = load(port, bodies.name, connections, NULL_SECONDS, client_core)
                            answer["per_s"] = answer["requests"] / answer["seconds"]
                            answer["cpu_us"] = (cpu_seconds_of(processes) - before) * 1e6 / answer["requests"]
                            turns.append(answer)
                        row = {"form": form, "inputs": inputs, "connections": connections,
                               **{name: median_of(turns, name) for name in ("per_s", "cpu_us", "p50_ms", "p99_ms")}}
                        row["per_core_s"] = 1e6 / row["cpu_us"]
                        rows.append(row)
                        print(f"  {form}, {inputs} inputs, {connections:2} connections: {row['per_s']:.0f}/s, "
                              f"{row['cpu_us']:.0f} us of CPU each", flush=True)
    return rows


@contextlib.contextmanager
def one_process(bouquet, model, server_core, _):
    with ServerProcess(["taskset", "-c", server_core, bouquet, "serve", model, "--port", "{port}", "--threads", "1",
                        "--log-level", "warning"]) as server:
        yield server.port


@contextlib.contextmanager
def ivy_and_two_tulips(bouquet, model, server_core, client_core):
    """Engines on one core, the gateway beside the generator."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        replicas = []
        for i in range(2):
            address = f"unix:{folder}/tulip{i}.sock"
            stack.enter_context(ServerProcess(
                ["taskset", "-c", server_core, bouquet, "tulip", model, "--listen", address, "--threads", "1",
                 "--metrics-listen", "127.0.0.1:{port}", "--log-level", "warning"]))
            replicas += ["--replica", address]
        server = stack.enter_context(ServerProcess(["taskset", "-c", client_core, bouquet, "ivy", model, *replicas,
                                                    "--port", "{port}", "--log-level", "warning"]))
        time.sleep(1)  # until both have been found
        yield server.port


def bench_row(bouquet, core, suite, port, tokens, *flags):
    """The one row of a run of `bouquet bench`."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run(["taskset", "-c", core, bouquet, "bench", suite, f"127.0.0.1:{port}", "--tokens",
                        str(tokens), "--rounds", "1", "--quiet", "true", "--output", out.name,
                        *map(str, flags)], check=True, stdout=subprocess.DEVNULL)
        return json.loads(Path(out.name).read_text())["rows"][0]


def overload_round(bouquet, port, core, tokens, in_flight):
    def capacity():
        row = bench_row(bouquet, core, "concurrency", port, tokens, "--in-flight", in_flight, "--seconds",
                        CAPACITY_SECONDS)
        return row["metrics"]["requests_per_s"]["median"]

    before = capacity()
    steady = bench_row(bouquet, core, "load", port, tokens, "--rate", 2 * before, "--seconds", STEADY_SECONDS)
    after = capacity()
    burst = bench_row(bouquet, core, "load", port, tokens, "--rate", CALM_SHARE * before, "--burst", 2 * before, "--seconds",
                      CALM_SECONDS, "--burst-seconds", BURST_SECONDS)
    refused = steady["failed"].get("429", {"count": 0, "with_retry_after": 0, "latency_ms": {"p50": 0, "p99": 0}})
    burst_refused = burst["failed"].get("429", {"count": 0, "with_retry_after": 0})
    recovery = burst["metrics"].get("recovery_s")
    return {"capacity_per_s": (before + after) / 2,
            # From the first request's due time to the last answer: all that was computed in that time.
            "goodput_per_s": steady["metrics"]["requests_per_s"]["median"],
            "accepted_p50_ms": steady["latency_ms"]["p50"], "accepted_p99_ms": steady["latency_ms"]["p99"],
            "refused": refused["count"] + burst_refused["count"],
            "with_retry_after": refused["with_retry_after"] + burst_refused["with_retry_after"],
            "refused_p50_ms": refused["latency_ms"]["p50"], "refused_p99_ms": refused["latency_ms"]["p99"],
            "other_failures": sum(outcome["count"] for row in (steady, burst)
                                  for name, outcome in row["failed"].items() if name != "429"),
            "send_lag_p99_ms": steady["send_lag_ms"]["p99"],
            "recovery_s": recovery["median"] if recovery else None}


def overload(bouquet, model):
    """Twice what a closed loop gets through: how much of the capacity is left, and how soon is the rest refused?"""
    server_core, client_core = server_and_client_core()
    results = []
    for form, start in (("one process", one_process), ("Ivy and two Tulips", ivy_and_two_tulips)):
        for tokens, in_flight in OVERLOAD_SHAPES:
            with start(bouquet, model, server_core, client_core) as port:
                rounds = [overload_round(bouquet, port, client_core, tokens, in_flight)
                          for _ in range(OVERLOAD_ROUNDS)]
            results.append(overload_row(form, tokens, rounds))
    return {"max_queue_s": MAX_QUEUE_SECONDS, "calm_share": CALM_SHARE, "rows": results}


def overload_row(form, tokens, rounds):
    recoveries = [r["recovery_s"] for r in rounds]
    row = {"form": form, "tokens": tokens,
           "goodput_share": statistics.median(r["goodput_per_s"] / r["capacity_per_s"] for r in rounds),
           **{name: median_of(rounds, name) for name in ("capacity_per_s", "goodput_per_s", "accepted_p99_ms",
                                                         "refused_p50_ms", "refused_p99_ms", "send_lag_p99_ms")},
           **{name: sum(r[name] for r in rounds) for name in ("refused", "with_retry_after", "other_failures")},
           "recovery_s": None if None in recoveries else statistics.median(recoveries), "rounds": rounds}
    print(f"  {form}, {tokens} tokens: capacity {row['capacity_per_s']:.0f}/s, goodput {row['goodput_share']:.2f} of "
          f"it; {row['refused']} refused, p99 {row['refused_p99_ms']:.1f} ms, {row['with_retry_after']} with "
          f"Retry-After; recovered after {row['recovery_s']} s", flush=True)
    return row

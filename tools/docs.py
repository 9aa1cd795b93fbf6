#!/usr/bin/env python3
"""Writes what documents say about measurements, from the committed files in bench/results.

  docs.py --write    replaces what stands between the markers
  docs.py --check    exit code 1 when a document does not say what the newest results say (the test `docs_are_current`)

A place in a document is marked by two comments, `<!-- measured: NAME -->` and `<!-- end -->`. Each NAME is a function
below; it takes the newest result file that holds its item, or the newest of each model.
"""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "docs/performance.md")
PLACE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NOTHING = "Not measured yet: `./dev {}` writes a result file.\n"


def newest(results, item):
    holders = [result for result in results if (has_kernels(result) if item == "gpu_kernels" else item in result)]
    return holders[-1] if holders else None


def source_line(result, what=None):
    """`what` was measured, if not a model in one precision."""
    machine = result["machine"]
    isa = "AVX-512" if "avx512f" in machine["flags"] else "AVX2" if "avx2" in machine["flags"] else "no AVX2"
    if "avx512_bf16" in machine["flags"]:
        isa += " with BF16"
    what = what or f"{result['model']}, {result['dtype']}"
    return (f"{what}; {machine['cpu']}, {machine['cores']} cores, {isa}; "
            f"{result['date']}, commit {result['commit'][:12]}, `{result['command']}`.\n")


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def gateway(result):
    rows = [[row["connections"], f"{row['per_s']:.0f}", f"{row['p50_ms']:.2f}", f"{row['echo_per_s']:.0f}",
             f"**{row['ratio']:.2f}**"] for row in result["gateway"]]
    return (table(["connections", "requests a second", "p50 ms", "bare Beast echo, a second", "ratio"], rows)
            + "\n" + source_line(result))


def embed(result):
    row = result["embed"]
    return (table(["`bouquet embed`, start and all", "the engine alone", "ratio"],
                  [[f"{row['embed_s']:.2f} s", f"{row['engine_s']:.2f} s", f"{row['ratio']:.2f}"]])
            + f"\n{row['lines']} lines, {row['tokens']} tokens. " + source_line(result))


def grpc_hop(result):
    def where(row):
        return row["transport"].replace("tcp", "TCP loopback").replace("unix", "unix socket")

    def line(row):
        return [row["cell"], row["under_way"], where(row), f"{row['grpc_us']:.0f}", f"{row['in_process_us']:.0f}",
                f"{row['echo_us']:.0f}", f"**{row['ratio']:.2f}**",
                f"{row['quartiles'][0]:.2f} to {row['quartiles'][1]:.2f}"]

    rows = result["grpc_hop"]["rows"]
    lone = [line(row)[:1] + line(row)[2:] for row in rows if row["pause_us"]]
    many = [line(row) for row in rows if not row["pause_us"]]
    ways = ["over gRPC", "in process", "bare echo", "hop / echo", "quartiles"]
    return ("A lone chunk, p50 in microseconds:\n\n" + table(["sequences x tokens", "over", *ways], lone)
            + "\nOne after the other without pause: with 1 under way p50, with more wall time over chunks:\n\n"
            + table(["sequences x tokens", "under way", "over", *ways], many)
            + f"\n{result['grpc_hop']['rounds']} rounds, medians. " + source_line(result))


def ivy_stages(result):
    facts = result["ivy_stages"]

    def both(name, us, mark=""):
        return [f"{mark}{name}{mark}"] + [f"{mark}{us[cores]:.1f}{mark}" for cores in ("awake", "asleep")]

    rows = [both(stage["stage"], stage) for stage in facts["stages"]]
    rows += [both("send to last byte", facts["total_us"], "**"), both("a bare HTTP echo, same client", facts["echo_us"])]
    alone = ", ".join(f"{name} {us:.2f}" for name, us in facts["alone_us"].items())
    return (table(["stage, p50 us", "cores awake", "cores asleep"], rows)
            + f"\nWhat is a pure function, by itself and warm, in us: {alone}.\n"
            + f"{facts['requests']} requests each. " + source_line(result))


def null_rates(result):
    rows = [[row["form"], row["inputs"], row["connections"], f"{row['per_s']:.0f}", f"{row['cpu_us']:.0f}",
             f"{row['per_core_s']:.0f}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}"] for row in result["null_rates"]]
    return (table(["form", "texts a request", "connections", "requests a second", "CPU us each", "a second of CPU",
                   "p50 ms", "p99 ms"], rows) + "\n" + source_line(result))


def overload(result):
    facts = result["overload"]

    def recovery(row):
        return "not within the run" if row["recovery_s"] is None else f"{row['recovery_s']:.2f} s"

    rows = [[row["form"], row["tokens"], f"{row['capacity_per_s']:.0f}/s", f"**{row['goodput_share']:.2f}**", row["refused"],
             f"{100 * row['with_retry_after'] / max(row['refused'], 1):.0f} %", row["other_failures"],
             f"{row['refused_p50_ms']:.2f} / {row['refused_p99_ms']:.2f}", f"{row['send_lag_p99_ms']:.2f}",
             f"{row['accepted_p99_ms']:.0f}", recovery(row)] for row in facts["rows"]]
    return (table(["form", "tokens", "capacity", "goodput / capacity", "429", "with Retry-After", "other failures",
                   "429: p50 / p99 ms", "generator's lag, p99 ms", "accepted: p99 ms", "recovered after"], rows)
            + f"\n--max-queue-ms {1000 * facts['max_queue_s']}; medians of {len(facts['rows'][0]['rounds'])} rounds. "
            + source_line(result))


def instruction_sets(result):
    """A line for each set and precision: milliseconds, and the share of what that set can multiply, of each batch."""
    found = {}
    for row in result["instruction_sets"]:
        found.setdefault((row["dtype"], row["isa"]), []).append(row)
    batches = [f"{row['sequences']} x {row['tokens']} tokens" for row in next(iter(found.values()))]
    rows = [[dtype, isa.replace("best", "all it has")]
            + [f"{row['ms']:.2f} ms, **{100 * row['of_peak_busy']:.0f} %**" for row in cells]
            for (dtype, isa), cells in found.items()]
    return (table(["one thread", "kernels", *batches], rows) + "\n"
            + source_line({**result, "model": "MiniLM's shape", "dtype": "float32 and bfloat16"}))


def gpu_source_line(result):
    device, rows = result["gpu"]["device_before"], result["gpu"]["shapes"]
    facts = rows[0]["load"]["facts"]
    clocks = f", driver {device['driver']}" if device else ""
    checks = [row["check"] for row in rows]
    checked = ("vectors not compared" if None in checks else
               f"vectors within {max(check['worst'] for check in checks):.1e} of the reference in float32 (1 - cosine)")
    return (f"{facts['device']}{clocks}; {result['dtype']}, random weights; {checked}; {result['date']}, commit "
            f"{result['commit'][:12]}, `{result['command']}`.\n")


def gpu(result):
    """Latency, scoring and throughput of each shape, and what loading takes."""
    def beside(cell):
        return ([f"{cell['vllm_ms']:.2f}", f"**{cell['ratio']:.2f}**"] if "ratio" in cell else ["", ""]) + (
            [f"{cell['floor_ms']:.2f}"] if "floor_ms" in cell else [""])

    text = ""
    for shape in result["gpu"]["shapes"]:
        if "latency" not in shape:
            continue
        rows = [[f"{cell['sequences']} x {cell['tokens']}", *(f"{cell['ms'][name]:.3f}" for name in ("p50", "p90", "p99", "max")),
                 *beside(cell), f"{cell['host_us']['p50']:.0f}"] for cell in shape["latency"] + shape["scoring"]]
        text += f"Shape of {shape['shape']}:\n\n" + table(
            ["sequences x tokens", "p50 ms", "p90", "p99", "max", "vLLM 0.22 p50", "times as fast", "floor", "host us a step"],
            rows)
        rows = [[row["tokens"], f"{row['per_s']:.0f}", row["step_tokens"], row.get("vllm_per_s", ""),
                 f"**{row['ratio']:.2f}**" if "ratio" in row else "",
                 f"{row['floor_per_s']:.0f}" if "floor_per_s" in row else ""] for row in shape["throughput"]]
        text += "\n" + table(["tokens", "embeddings a second", "in steps of", "vLLM 0.22", "times as many", "floor"], rows)
        load = shape["load"]
        captures = shape["captures"]
        text += (f"\nLoad {load['second']['load_s']:.2f} s from a warm disk cache; process start to first answer "
                 f"{load['second']['start_to_answer_s']:.2f} s; peak host memory {load['peak_host_bytes'] / 2**20:.0f} MiB, "
                 f"{load['peak_host_bytes'] / load['weight_bytes']:.2f} times the weights (a tiny model: "
                 f"{result['gpu']['bare_host_bytes'] / 2**20:.0f} MiB).")
        if captures:
            text += f" Capture of one graph: at most {max(c['ms'] for c in captures):.1f} ms of {len(captures)} sizes."
        text += "\n\n"
    return text + gpu_source_line(result)


def gpu_kernels(result):
    """Of the newest run that has tables of kernels: a column per size of step."""
    text = ""
    for shape in result["gpu"]["shapes"]:
        steps = shape.get("kernels", {}).get("steps", [])
        if not steps:
            continue
        names = sorted({row["what"] for step in steps for row in step["rows"]},
                       key=lambda name: -max(row["us"] for step in steps for row in step["rows"] if row["what"] == name))
        rows = []
        for name in names:
            found = [next((row for row in step["rows"] if row["what"] == name), None) for step in steps]
            rows.append([name] + [cell for row in found for cell in (
                (row["launches"], f"{row['us']:.0f}", "" if row["us_per_layer"] is None else f"{row['us_per_layer']:.2f}")
                if row else ("", "", ""))])
        for name, count, member in (("kernels", "launches", "kernels_us"), ("gaps", None, "gaps_us"),
                                    ("step, p50", None, "wall_us")):
            rows.append([f"**{name}**"] + [cell for step in steps
                                           for cell in (step[count] if count else "", f"**{step[member]:.0f}**", "")])
        header = [shape["shape"]] + [cell for step in steps for cell in (f"{step['tokens']} tokens: launches", "us", "a layer")]
        text += table(header, rows) + "\n"
    return text + gpu_source_line(result)


CELLS = {"latency": "{} ms", "throughput": "{}, a second"}


def figures(engine, row):
    """Of one engine in one cell, as its kind is read: milliseconds of one sequence, or sequences a second."""
    if engine is None:
        return "-"
    return f"{engine['ms']:.2f}" if row["kind"] == "latency" else f"{engine['per_s']:.0f}"


def peers_table(run, dtype):
    """Of one number of threads and one precision; the last lines are ours against the best of the others, and shares."""
    names = [name for name in run["engines"] if name.endswith(dtype)]
    names = [name for name in names if any(name in row["engines"] for row in run["cells"])]
    ours = f"Bouquet {dtype}"
    header = [f"{dtype}, {run['threads']} thread" + ("s" if run["threads"] > 1 else "")]
    header += [CELLS[row["kind"]].format(row["cell"]) for row in run["cells"]]
    rows = [[name.rpartition(" ")[0]] + [figures(row["engines"].get(name), row) for row in run["cells"]] for name in names]
    if any(dtype in row["ratios"] for row in run["cells"]):
        rows.append(["**times as fast as the best peer**"]
                    + [f"**{row['ratios'][dtype]['ratio']:.2f}**" if dtype in row["ratios"] else "" for row in run["cells"]])
        rows.append(["the same by processor time"]
                    + [f"{row['ratios'][dtype]['cpu_ratio']:.2f}" if dtype in row["ratios"] else "" for row in run["cells"]])
    for title, share in (("Bouquet's share of the peak", "of_peak"), ("by processor time", "of_peak_busy"),
                         ("of memory's read rate", "of_memory")):
        values = [row["engines"].get(ours, {}).get(share) for row in run["cells"]]
        if any(value is not None for value in values):
            rows.append([title] + ["" if value is None else f"{100 * value:.0f} %" for value in values])
    return table(header, rows) + "\n"


def peers_costs(run):
    rows = [[name, facts["version"], f"{facts['ready_s']:.2f} s", f"{facts['resident_mb']:.0f} MB",
             f"{facts['one_minus_cosine']:.0e}"] for name, facts in run["engines"].items()]
    return table(["engine", "version", "ready after", "resident", "1 - cosine"], rows) + "\n"


def peers_notes(runs):
    text = ""
    for run in runs:
        gave = run["machine_gave"]
        bf16 = f", {gave['bfloat16'] / 1e9:.0f} in bfloat16" if gave.get("bfloat16") else ""
        text += (f"{run['threads']} thread(s): the machine gave {gave['float32'] / 1e9:.0f} GFLOP/s{bf16}, read memory with "
                 f"{gave['read'] / 1e9:.0f} GB/s and as many bytes as the matrices have, again and again, with "
                 f"{gave['read_weights'] / 1e9:.0f}; load average {run['load_average']:.1f}. ")
        if len(run["turns"]) > 1:
            text += "Turns were taken within: " + "; ".join(", ".join(group) for group in run["turns"]) + ". "
    for name, why in {name: why for run in runs for name, why in run["left_out"].items()}.items():
        text += f"Left out: {name}: {why}. "
    return text


def runs_of(result, model):
    return next(part for part in result["cpu_peers"] if part["model"] == model)["runs"]


def cpu_peers(result, model):
    runs = runs_of(result, model)
    text = f"{model}:\n\n"
    for run in runs:
        for dtype in ("float32", "bfloat16"):
            if any(name.endswith(dtype) for row in run["cells"] for name in row["engines"]):
                text += peers_table(run, dtype)
    return text + peers_costs(runs[0]) + peers_notes(runs) + source_line({**result, "model": model})


def cpu_summary(result, model):
    """How many times as fast as the best peer; of models with random weights, which have no throughput, nothing."""
    runs = runs_of(result, model)
    cells = [row["cell"] + (", in batches" if row["kind"] == "throughput" else "") for row in runs[0]["cells"]]
    if all(row["kind"] == "latency" for row in runs[0]["cells"]):
        return ""
    rows = []
    for run in runs:
        for dtype in ("float32", "bfloat16"):
            ratios = [row["ratios"].get(dtype) for row in run["cells"]]
            if any(ratios):
                rows.append([f"{dtype}, {run['threads']} thread" + ("s" if run["threads"] > 1 else "")]
                            + [f"**{ratio['ratio']:.2f}**" if ratio else "" for ratio in ratios])
    return table([f"{model}, times as fast", *cells], rows) + "\n" + source_line({**result, "model": model})


def http_rows(rows, with_connections):
    """Of one load: a line for each server, ours with its share of the engine's own rate."""
    with_share = any("of_engine_rate" in row for row in rows)
    header = ["requests a second", "p50 ms", "p99 ms", "p99 / p50", "processor ms each", "Bouquet is times as fast"]
    lines = []
    for row in rows:
        for name, found in row["servers"].items():
            ratio = row["ratios"].get(name)
            line = [row["connections"]] if with_connections else []
            digits = 1 if found["per_s"] >= 10 else 2
            line += [name, f"{found['per_s']:.{digits}f}", f"{found['p50_ms']:.2f}", f"{found['p99_ms']:.2f}",
                     f"{found['p99_of_p50']:.2f}", f"{found['cpu_ms']:.2f}", f"**{ratio['ratio']:.2f}**" if ratio else ""]
            lines.append(line + ([f"{row['of_engine_rate']:.2f}" if name == "Bouquet" else ""] if with_share else []))
    return table((["connections"] if with_connections else []) + ["server"] + header
                 + (["share of the engine's own rate"] if with_share else []), lines) + "\n"


def http_notes(facts):
    text = ""
    if facts["one"]:
        one = facts["one"]
        text += (f"One text of {one['tokens']} tokens again and again, in turns with the engine alone: p50 "
                 f"{one['http_p50_ms']:.2f} ms against {one['engine_p50_ms']:.2f} ms; median of the differences "
                 f"{one['added_ms']:+.2f} ms. ")
        if "socket_added_ms" in one:
            text += (f"The engine behind a bare socket, without HTTP, JSON, tokenizer or a thread of its own, is that time "
                     f"{one['socket_added_ms']:+.2f} ms: sockets, and a client that shares the cores, cost as much. The engine "
                     f"on each of the short texts alone has p99 {one['engine_p99_of_p50']:.2f} times p50, since they differ in "
                     "length. ")
    engine_per_s = [row["engine_per_s"] for row in facts["rows"] if "engine_per_s" in row]
    if engine_per_s:
        text += f"The engine alone: {min(engine_per_s):.0f} to {max(engine_per_s):.0f} short texts a second in full batches. "
    text += (f"Short texts have {facts['short_tokens']:.0f} tokens, passages {facts['passage_tokens']:.0f}, on average; the "
             f"weights are {facts['weights_mb']:.0f} MB; load average {facts['load_average']:.1f}. Vectors were compared with "
             f"{facts['reference']}. ")
    for name, why in facts["left_out"].items():
        text += f"Left out: {name}: {why}. "
    for row in facts["rows"]:
        for name, why in row["failed"].items():
            text += f"Failed under {row['load']}, {row['connections']} connection(s), {row['texts']} text(s): {name}: {why}. "
    return text


def http_peers(result, _):
    facts = result["http_peers"]
    text = ""
    for load, title in (("wrk", "wrk, one short text a request"), ("bouquet bench", "`bouquet bench`, the same")):
        rows = [row for row in facts["rows"] if row["load"] == load and row["texts"] == 1]
        text += f"{title}:\n\n" + http_rows(rows, True)
    for row in facts["rows"]:
        if row["texts"] > 1:
            text += (f"`bouquet bench`, {row['texts']} passages a request, {row['connections']} requests under way:\n\n"
                     + http_rows([row], False))
    costs = [[name, found["version"], f"{found['ready_s']:.2f} s", f"{found['resident_mb']:.0f} MB",
              f"{found['resident_after_mb']:.0f} MB" if "resident_after_mb" in found else "",
              f"{found['one_minus_cosine']:.0e}", f"`{found['settings']}`"] for name, found in facts["servers"].items()]
    return (text + table(["server", "version", "ready after", "resident at rest", "after the load", "1 - cosine", "started with"],
                         costs) + "\n" + http_notes(facts) + source_line(result))


def quality(result, _):
    dtypes = list(result["quality"][0]["ours"])
    rows = []
    for row in result["quality"]:
        rows.append([row["set"], row["metric"], row["texts"], f"{row['reference']:.4f}"]
                    + [f"**{row['ours'][dtype]:.4f}**" for dtype in dtypes]
                    + [f"{row['largest_one_minus_cosine'][dtype]:.0e}" for dtype in dtypes])
    return (table(["set", "figure", "texts", "reference"] + [f"Bouquet {dtype}" for dtype in dtypes]
                  + [f"worst 1 - cosine, {dtype}" for dtype in dtypes], rows) + "\n" + source_line(result))


def tokenizers(result):
    rows = []
    for row in result["tokenizers"]:
        for part in row["texts"]:
            rows.append([row["tokenizer"], row["kind"], part["texts"], f"{part['ours_mb_per_s']:.1f}",
                         f"{part['reference_mb_per_s']:.2f}", f"**{part['ratio']:.1f}**"])
    loading = [[row["tokenizer"], f"{row['loading']['ours_ms']:.0f}", f"{row['loading']['reference_ms']:.0f}"]
               for row in result["tokenizers"]]
    kinds = result["tokenizers"]
    texts = [growth["text"] for growth in kinds[0]["growth"]]
    growths = [[text] + [f"{row['growth'][i]['growth']:.2f} ({row['growth'][i]['seconds'][-1]:.2f} s, "
                         f"{row['growth'][i]['peak_mb']:.0f} MB)" for row in kinds] for i, text in enumerate(texts)]
    return (table(["tokenizer", "kind", "texts", "Bouquet MB/s", "reference MB/s", "ratio"], rows)
            + "\nLoading, ms, files in memory:\n\n" + table(["tokenizer", "Bouquet", "reference"], loading)
            + f"\nThe largest growth of the time from {result['sizes_mb'][0]:.2f} to {result['sizes_mb'][-1]:.0f} MB, doubling "
            "each time (1.00 is twice the time for twice the text); the time of the longest, and the most memory that the process "
            "held:\n\n" + table(["text"] + [row["tokenizer"] for row in kinds], growths) + "\n"
            + source_line(result, f"One thread, {result['reference']} the same"))


def has_kernels(result):
    return any(shape.get("kernels", {}).get("steps") for shape in result.get("gpu", {}).get("shapes", []))


ITEMS = {"gpu": gpu, "gpu_kernels": gpu_kernels, "gateway": gateway, "embed": embed, "grpc_hop": grpc_hop,
         "ivy_stages": ivy_stages, "null_rates": null_rates, "overload": overload, "instruction_sets": instruction_sets,
         "tokenizers": tokenizers}


# Of these a document shows the newest result of each model.
MODEL_ITEMS = {"cpu_peers": cpu_peers, "cpu_summary": cpu_summary, "http_peers": http_peers, "quality": quality}
VERBS = {"instruction_sets": "bench isa",
         "gpu": "gpu-bench", "gpu_kernels": "gpu-bench --kernels", "cpu_peers": "bench cpu-peers",
         "http_peers": "bench http-peers", "quality": "bench quality",
         "tokenizers": "bench tokenizers"}


def newest_of_each_model(results, item):
    """{key: (result, model)}; sets of quality, or dtypes, that were measured in other runs of a model have tables
    of their own."""
    found = {}
    for result in results:
        if item in result:
            models = [part["model"] for part in result[item]] if item == "cpu_peers" else [result["model"]]
            part = ([row["set"] for row in result[item]] + list(result[item][0]["ours"])) if item == "quality" else []
            found.update({(model, tuple(part)): (result, model) for model in models})
    return found


def rendered(item, results):
    if item in MODEL_ITEMS:
        newest_ones = newest_of_each_model(results, "cpu_peers" if item == "cpu_summary" else item)
        return "\n".join(filter(None, (MODEL_ITEMS[item](result, model) for result, model in newest_ones.values())))
    result = newest(results, item)
    return ITEMS[item](result) if result else ""


def render(text, results):
    def fill(match):
        item = match.group(2)
        return match.group(1) + (rendered(item, results) or NOTHING.format(VERBS.get(item, "bench"))) + match.group(3)
    return PLACE.sub(fill, text)


def main(arguments):
    if arguments not in (["--write"], ["--check"]):
        raise SystemExit(__doc__)
    results = [json.loads(f.read_text()) for f in sorted((ROOT / "bench/results").glob("*.json"))]
    stale = []
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text()
        wanted = render(text, results)
        if wanted != text:
            stale.append(name)
            if arguments == ["--write"]:
                path.write_text(wanted)
    if arguments == ["--check"] and stale:
        print(f"{', '.join(stale)}: not what bench/results says; run tools/docs.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Where the microseconds of a step go: kernels of one replayed step, timed one by one by Nsight Compute.

ncu sees only the last run of a size (engine_timing's "profile"), after the runs that capture it. Clocks and caches are left
alone, so that a kernel finds what its predecessor left in the L2. Each kernel runs alone: what the table calls gaps is the
step's time less the kernels' sum, hand-over, copies and the host included; overlapping kernels make it smaller.
"""
import csv
import json
import re
import subprocess
import tempfile
from pathlib import Path

import device_tools
from engine_process import request_line

TIMEOUT_S = 90
METRIC = "gpu__time_duration.sum"
# By the kernel's own name, without namespaces, template arguments and parameters; the first that fits.
GROUPS = (("embedding", r"^Embed"), ("norm", r"^Norm(?!alizeRows)"), ("rotary", r"^Rotary"),
          ("sines, cosines", r"^Rotations"), ("activation", r"^Activation"), ("pooling", r"^Pooling"),
          ("dense head", r"^GemmRows"), ("finish", r"^(NormalizeRows|FinishRows)"),
          ("planner", r"^Plan"), ("attention", r"Attention|Prefill|[Ff]mha|[Ff]lash"),
          ("GEMM", r"(?i)nvjet|gemm|cutlass|xmma|splitk"))
GEMMS_OF_A_LAYER = {"qwen3": ("GEMM QKV", "GEMM O", "GEMM gate, up", "GEMM down"),
                    "xlm-roberta": ("GEMM QKV", "GEMM O", "GEMM up", "GEMM down")}


def short_name(name):
    """NormKernel of `void bouquet::(anonymous namespace)::NormKernel<…>(…)`."""
    name = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    name = re.sub(r"^(static )?\w[\w ]* (?=\w+(::|<|\())", "", name)
    name = re.split(r"[<(]", name, maxsplit=1)[0]
    return name.rsplit("::", 1)[-1].strip()


def group_of(name):
    short = short_name(name)
    other = "GEMM" if "cutlass::" in name.split("<", 1)[0] else short
    return next((group for group, pattern in GROUPS if re.search(pattern, short)), other)


def read_csv(text):
    """[(kernel name, microseconds)] in the order of execution."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    kernels = []
    for row in csv.DictReader(line for line in lines[start:] if line.startswith('"')):
        if row.get("Metric Name") == METRIC:
            scale = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}[row["Metric Unit"]]
            kernels.append((row["Kernel Name"], float(row["Metric Value"].replace(",", "")) * scale))
    return kernels


def label_gemms(groups, family, layers):
    """GEMMs of a layer by their order, where there are as many as a layer has; the reduction belongs to its product."""
    names = GEMMS_OF_A_LAYER.get(family, ())
    is_product = [group == "GEMM" and not short.lower().startswith("splitk") for group, short in groups]
    if not names or sum(is_product) != layers * len(names):
        return [group for group, _ in groups]
    labels, count = [], 0
    for (group, _), starts in zip(groups, is_product):
        count += starts
        labels.append(names[(count - 1) % len(names)] if group == "GEMM" else group)
    return labels


def table_of(kernels, family, layers):
    """Rows of {what, launches, us, names}, the most expensive first."""
    labels = label_gemms([(group_of(name), short_name(name)) for name, _ in kernels], family, layers)
    rows = {}
    for label, (name, us) in zip(labels, kernels):
        row = rows.setdefault(label, {"what": label, "launches": 0, "us": 0.0, "names": []})
        row["launches"] += 1
        row["us"] += us
        if (short := short_name(name)) not in row["names"]:
            row["names"].append(short)
    for row in rows.values():
        row["us_per_layer"] = row["us"] / layers if row["launches"] >= layers else None
    return sorted(rows.values(), key=lambda row: -row["us"])


def run_ncu(ncu, binary, folder, ids, graphs, options):
    """The kernels of one step, and what went wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        requests, log = Path(scratch) / "requests", Path(scratch) / "log"
        requests.write_text(request_line([[ids]], repeat=4) + request_line([[ids]], repeat=1, profile=True))
        command = [ncu, "--graph-profiling", "node", "--profile-from-start", "off", "--clock-control", "none",
                   "--cache-control", "none", "--metrics", METRIC, "--csv", "--print-units", "base", "--log-file", str(log),
                   str(binary), str(folder), *(f"{k}={v}" for k, v in options.items()), f"graphs={graphs}",
                   f"requests={requests}"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
                                  check=False)
        except subprocess.TimeoutExpired:
            return [], f"ncu took more than {TIMEOUT_S} s"
        text = log.read_text(errors="replace") if log.exists() else ""
        complaint = next((line for line in (text + "\n" + done.stderr).splitlines() if "==ERROR==" in line), "")
        if done.returncode != 0 and not complaint:
            complaint = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        if done.returncode == 0 and not complaint and graphs == "lazy":
            last = json.loads(done.stdout.strip().splitlines()[-1])
            if last["replays"] != 1:
                complaint = "the step was not replayed"
        return read_csv(text), complaint


def measure(binary, folder, shape, lengths, ids_of, wall_us, options):
    """`wall_us`: microseconds of a step by its tokens, measured without ncu. Returns a list, or says why it cannot."""
    ncu = device_tools.find_tool("ncu")
    if ncu is None:
        return {"missing": "ncu (Nsight Compute) is not on this machine"}
    steps = []
    for tokens in lengths:
        for graphs in ("lazy", "off"):  # the same kernels one by one, where ncu does not look into graphs
            kernels, complaint = run_ncu(ncu, binary, folder, ids_of(tokens), graphs, options)
            if kernels and not complaint:
                break
        else:
            return {"missing": f"ncu shows no kernels of a step: {complaint or 'none were launched'}"}
        rows = table_of(kernels, shape["family"], shape["layers"])
        total = sum(row["us"] for row in rows)
        steps.append({"tokens": tokens, "graphs": graphs, "launches": len(kernels), "kernels_us": total,
                      "wall_us": wall_us[tokens], "gaps_us": wall_us[tokens] - total, "rows": rows})
    return {"steps": steps}


def show(found):
    if "missing" in found:
        print(f"no table of kernels: {found['missing']}", flush=True)
        return
    for step in found["steps"]:
        print(f"\n{step['tokens']} tokens, {'a replayed graph' if step['graphs'] == 'lazy' else 'launched one by one'}: "
              f"{step['launches']} launches", flush=True)
        for row in step["rows"]:
            layer = f"{row['us_per_layer']:9.2f} a layer" if row["us_per_layer"] is not None else ""
            print(f"  {row['what']:<16} {row['launches']:>4} x {row['us']:>9.1f} us {100 * row['us'] / step['wall_us']:>5.1f} % "
                  f"{layer}  {', '.join(row['names'])[:70]}")
        print(f"  {'sum':<16} {'':>6} {step['kernels_us']:>9.1f} us\n  {'step':<16} {'':>6} {step['wall_us']:>9.1f} us\n"
              f"  {'gaps':<16} {'':>6} {step['gaps_us']:>9.1f} us {100 * step['gaps_us'] / step['wall_us']:>5.1f} %", flush=True)

#!/usr/bin/env python3
"""`./dev gpu-bench`: speed on a GPU, for the shapes of Qwen3-0.6B and XLM-RoBERTa-large with random weights.

  gpu.py [--quick] [--kernels] [--device cuda:0] [--shapes NAME ...] [--attention NAME]

Latency of one sequence of 8 to 4096 tokens, scoring of 5, 25 and 50 sequences of 512 tokens, throughput in full steps with
two under way, loading, peak host memory, host time per step and capture time, each beside the floor of the hardware and the
best measurement of vLLM (gpu_anchors.py). Vectors are compared with the reference library first where torch and
sentence-transformers are there; a shape that fails reports no times. --kernels adds where the microseconds of a step of 16,
512 and 4096 tokens go (gpu_kernels.py). Writes bench/results/DATE-gpu.json. --tiny runs everything on tiny models, which
says whether the script works. Needs numpy; without it the exit code is 77.
"""
import argparse
import datetime
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import numpy as np

    import device_tools
    import gpu_kernels
    import machine
    import make_random_model
    import result_file
    from engine_process import EngineProcess, default_folder
    from gpu_suites import Ids, Plan, Suites
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SHAPES = {
    "qwen3-0.6b": ["--shape", "qwen3-0.6b", "--family", "qwen3-bidirectional", "--dtype", "BF16"],
    "xlm-roberta-large": ["--shape", "xlm-roberta-large", "--dtype", "BF16"],
}
TINY_SHAPES = {
    "tiny-qwen3": ["--shape", "tiny-qwen3", "--family", "qwen3-bidirectional"],
    "tiny-xlm-roberta": ["--shape", "tiny-xlm-roberta"],
}
CHECKED_TOKENS = (8, 64, 512)
PROFILED_TOKENS = (16, 512, 4096)
GATE = 1e-3  # 1 - cosine


def make_folders(folder, shapes):
    """All at once, each by a process; what is there from before stays."""
    makers = {name: subprocess.Popen([sys.executable, str(ROOT / "tools/make_random_model.py"), str(folder / name), *arguments])
              for name, arguments in shapes.items() if not (folder / name / "tokenizer_config.json").exists()}
    for name, maker in makers.items():
        if maker.wait() != 0:
            raise SystemExit(f"the model folder could not be made: {name}")


def facts_of(name):
    family, sizes = make_random_model.SHAPES[name]
    return {"family": family, "layers": sizes["layers"], "vocabulary": sizes["vocabulary"]}


def reference_rows(folder, names, device):
    """{name: rows} by the reference library, or why not."""
    if not device.startswith("cuda"):
        return None, "not compared: not on a GPU"
    ids = {name: [Ids(facts_of(name)["vocabulary"]).batch(1, n)[0] for n in CHECKED_TOKENS] for name in names}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"models": {name: str(folder / name) for name in names}, "ids": ids}, file)
        file.flush()
        done = subprocess.run([sys.executable, str(ROOT / "bench/gpu_reference.py"), file.name], capture_output=True, text=True,
                              check=False)
    if done.returncode == 77:
        return None, f"not compared: {done.stderr.strip()}"
    if done.returncode != 0:
        raise SystemExit(f"the reference library failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def check_vectors(suites, ids, expected):
    found = suites.rows([ids.batch(1, n) for n in CHECKED_TOKENS]).astype(np.float64)
    wanted = np.array(expected)
    cosine = (found * wanted).sum(-1) / (np.linalg.norm(found, axis=-1) * np.linalg.norm(wanted, axis=-1))
    worst = float(np.max(1 - cosine))
    return {"worst": worst, "ok": bool(np.all(1 - cosine <= GATE))}


def measure_shape(name, folder, arguments, plan, expected):
    ids = Ids(facts_of(name)["vocabulary"])
    suites = Suites(arguments.binaries / "engine_timing", folder, name, ids, engine_options(arguments), plan)
    row = {"shape": name, "layers": facts_of(name)["layers"], "load": suites.load()}
    print(f"\n==== {name}\n{row['load']['facts']['device']}, {row['load']['facts']['numerics']}", flush=True)
    show_load(row["load"])
    row["check"] = check_vectors(suites, ids, expected[name]) if expected else None
    if row["check"] and not row["check"]["ok"]:
        print(f"vectors differ from the reference: 1 - cosine {row['check']['worst']:.2e}; no times", flush=True)
        suites.close()
        return row
    row["captures"] = suites.captures()
    row["latency"] = suites.latency()
    show_cells("one sequence", row["latency"])
    row["scoring"] = suites.scoring()
    show_cells(f"sequences of {plan.scored_tokens}", row["scoring"])
    row["throughput"] = suites.throughput()
    show_throughput(row["throughput"])
    show_host(row)
    suites.close()
    return row


def measure_kernels(row, folder, arguments):
    wall = {cell["tokens"]: 1000 * cell["ms"]["p50"] for cell in row.get("latency", [])}
    tokens = [n for n in PROFILED_TOKENS if n in wall]
    shape = facts_of(row["shape"])
    ids = Ids(shape["vocabulary"])
    print(f"\n==== kernels of {row['shape']}", flush=True)
    row["kernels"] = gpu_kernels.measure(arguments.binaries / "engine_timing", folder, shape, tokens,
                                         lambda n: ids.batch(1, n)[0], wall, engine_options(arguments, max_step_tokens=4096))
    gpu_kernels.show(row["kernels"])


def engine_options(arguments, **more):
    is_cpu = arguments.device == "cpu"
    return {"device": arguments.device, **({} if is_cpu else {"attention": arguments.attention}), **more}


def show_load(load):
    share = load["peak_host_bytes"] / load["weight_bytes"]
    print(f"load {load['first']['load_s']:.2f} s, again {load['second']['load_s']:.2f} s; process start to first answer "
          f"{load['second']['start_to_answer_s']:.2f} s; peak host memory {load['peak_host_bytes'] / 2**20:.0f} MiB = "
          f"{share:.2f} x weights", flush=True)


def show_cells(title, cells):
    print(f"{title:>20} {'p50':>9} {'p90':>9} {'p99':>9} {'max':>9} ms {'vLLM':>7} {'faster':>7} {'floor':>7} {'x floor':>7}"
          f" {'host us':>8} {'p99':>7}")
    for cell in cells:
        ms = cell["ms"]
        what = f"{cell['sequences']} x {cell['tokens']}" + (f" in {cell['steps']}" if cell.get("steps", 1) > 1 else "")
        anchor = f"{cell['vllm_ms']:7.2f} {cell['ratio']:6.2f}x" if "ratio" in cell else f"{'-':>7} {'-':>7}"
        floor = f"{cell['floor_ms']:7.3f} {cell['of_floor']:6.2f}x" if "floor_ms" in cell else f"{'-':>7} {'-':>7}"
        print(f"{what:>20} {ms['p50']:9.3f} {ms['p90']:9.3f} {ms['p99']:9.3f} {ms['max']:9.3f}    {anchor} {floor}"
              f" {cell['host_us']['p50']:8.1f} {cell['host_us']['p99']:7.1f}", flush=True)


def show_throughput(rows):
    for row in rows:
        ways = ", ".join(f"{rate:.0f} in steps of {tokens}" for tokens, rate in row["by_step_tokens"].items())
        anchor = f"; vLLM {row['vllm_per_s']}, {row['ratio']:.2f} x" if "ratio" in row else ""
        floor = f"; {100 * row['of_floor']:.0f} % of the floor" if "of_floor" in row else ""
        print(f"{row['tokens']} tokens: {row['per_s']:.1f} embeddings/s ({ways}){anchor}{floor}", flush=True)


def show_host(row):
    host = max(row["latency"], key=lambda cell: cell["host_us"]["p50"])
    print(f"host time of a step: p50 at most {host['host_us']['p50']:.1f} us, at {host['tokens']} tokens"
          + ("" if row["check"] else "; vectors not compared"))
    if row["captures"]:
        print("capture of one graph: " + ", ".join(f"{c['cell']}: {c['ms']:.2f} ms" for c in row["captures"]), flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer runs, about a minute")
    parser.add_argument("--tiny", action="store_true", help="tiny models, to try the script")
    parser.add_argument("--kernels", action="store_true", help="time each kernel of a step with ncu")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--attention", default="auto")
    parser.add_argument("--shapes", nargs="+", help=", ".join(SHAPES))
    parser.add_argument("--binaries", type=Path, help="folder of engine_timing: build/cuda, or an unpacked bundle")
    parser.add_argument("--models", type=Path, help="folder for the random models, kept; default: a temporary one")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results")
    arguments = parser.parse_args()
    shapes = TINY_SHAPES if arguments.tiny else SHAPES
    if unknown := set(arguments.shapes or ()) - set(shapes):
        parser.error(f"unknown shape: {', '.join(unknown)}")
    arguments.shapes = {name: shapes[name] for name in arguments.shapes or shapes}
    arguments.binaries = arguments.binaries or Path(default_folder(ROOT))
    return arguments


def bare_host_bytes(arguments, folder):
    """What a process with a tiny model holds: the driver, the libraries, the staging buffers."""
    make_folders(folder, {"tiny-qwen3": TINY_SHAPES["tiny-qwen3"]})
    with EngineProcess(arguments.binaries / "engine_timing", folder / "tiny-qwen3", device=arguments.device) as engine:
        return engine.peak_bytes()


def measure(arguments, folder, result, save):
    """Everything into result["gpu"], saved after each part."""
    plan = Plan.tiny() if arguments.tiny else Plan.quick() if arguments.quick else Plan()
    make_folders(folder, arguments.shapes)
    expected, why_not = reference_rows(folder, list(arguments.shapes), arguments.device)
    print(f"vectors {why_not}" if why_not else "vectors are compared with the reference library", flush=True)
    gpu = result["gpu"] = {"device_before": device_tools.query(arguments.device), "shapes": []}
    gpu["bare_host_bytes"] = bare_host_bytes(arguments, folder)
    print(f"peak host memory of a process with a tiny model: {gpu['bare_host_bytes'] / 2**20:.0f} MiB\n"
          f"device before: {gpu['device_before']}", flush=True)
    for name in arguments.shapes:
        gpu["shapes"].append(measure_shape(name, folder / name, arguments, plan, expected))
        result["dtype"] = gpu["shapes"][0]["load"]["facts"]["dtype"]
        gpu["device_after"] = device_tools.query(arguments.device)
        save()
    print(f"device after: {gpu['device_after']}", flush=True)
    for row in gpu["shapes"] if arguments.kernels else ():
        measure_kernels(row, folder / row["shape"], arguments)
        save()


def main():
    arguments = parse()
    now = datetime.datetime.now(datetime.timezone.utc)
    result = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": machine.commit(arguments.binaries),
              "command": result_file.command_line("./dev gpu-bench", sys.argv[1:]), "machine": machine.describe(),
              "model": ", ".join(arguments.shapes)}
    folder = arguments.models or Path(tempfile.mkdtemp(prefix="gpu-bench-"))

    def save():
        return result_file.write(result, arguments.out, now.strftime("%Y-%m-%d-%H%M-gpu"))

    try:
        measure(arguments, folder, result, save)
    finally:
        if arguments.models is None:
            shutil.rmtree(folder)
    result_file.say_written(save())
    return 0 if all(row["check"] is None or row["check"]["ok"] for row in result["gpu"]["shapes"]) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Random steps for a long time on a tiny model (engine_soak.cc), while the memory of host and device is watched.

  soak.py [--steps 100000] [--device cuda:0] [--binary engine_soak]

Fails when a row differs from its sequence's alone, when the first steps repeated at the end give other bits, or when memory
grew after the first 10,000 steps (judged in runs of 20,000 or more). Needs numpy; without it the exit code is 77.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import device_tools
    import make_random_model
    from engine_process import default_folder
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

MODEL = ["--shape", "small-qwen3", "--family", "qwen3-bidirectional"]
# A leak of a few hundred bytes a step is above these after 90,000 steps. The device's is what nvidia-smi sees of the whole
# GPU, which the driver gives out in pieces of 2 MiB.
MOST_HOST_GROWTH = 16 << 20
MOST_DEVICE_GROWTH_MIB = 32
# A shorter run is still touching memory for the first time.
FEWEST_STEPS_TO_JUDGE = 20_000


def watch(command, device):
    """Prints progress. Returns what engine_soak said, with the device's memory added, and its exit code."""
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            said.append({**json.loads(line), "device_mib": device_tools.query(device).get("memory_used_mib")})
            if "steps" in said[-1]:
                progress = said[-1]
                on_device = "" if progress["device_mib"] is None else f", {progress['device_mib']} MiB on the device"
                print(f"{progress['steps']} steps, 1 - cosine at most {progress['worst']:.1e}, "
                      f"{progress['rss_bytes'] / 2**20:.1f} MiB on the host{on_device}", flush=True)
    return said, process.returncode


def growth_problems(first, last):
    problems = []
    if (grown := last["rss_bytes"] - first["rss_bytes"]) > MOST_HOST_GROWTH:
        problems.append(f"host memory grew by {grown / 2**20:.1f} MiB")
    if last["device_mib"] is not None and (grown := last["device_mib"] - first["device_mib"]) > MOST_DEVICE_GROWTH_MIB:
        problems.append(f"device memory grew by {grown} MiB")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--binary")
    options = parser.parse_args()
    binary = options.binary or f"{default_folder(ROOT)}/engine_soak"
    started = time.time()
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "tiny"
        make_random_model.write_model(folder, make_random_model.parse([str(folder), *MODEL]))
        said, code = watch([binary, str(folder), str(options.steps), f"device={options.device}"], options.device)
    if code != 0 or not said or not said[-1].get("done"):
        print(f"soak: FAILED with exit code {code}")
        return 1
    steps = [line for line in said if "steps" in line]
    is_judged = options.steps >= FEWEST_STEPS_TO_JUDGE
    problems = growth_problems(steps[0], steps[-1]) if is_judged else []
    growth = "; ".join(problems) or ("no growth" if is_judged else f"growth not judged under {FEWEST_STEPS_TO_JUDGE} steps")
    print(f"soak: {options.steps} steps in {time.time() - started:.0f} s on {said[-1]['device']}, {said[-1]['repeated']} "
          f"repeated with the same bits, graphs {said[-1]['graphs']}, {growth}: {'FAILED' if problems else 'ok'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

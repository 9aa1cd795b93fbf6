"""What a result file says about where it was measured."""
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGS_THAT_MATTER = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
                     "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8")


def _git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commit(binaries=None):
    """Of the tree, or of a bundle, which holds it in a file beside its programs."""
    if binaries is not None and (Path(binaries) / "COMMIT").exists():
        return (Path(binaries) / "COMMIT").read_text().strip()
    changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    return _git("rev-parse", "HEAD") + ("-changed" if changed else "")


def describe():
    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = fields.get("flags", "").split()
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "cpu": fields.get("model name", "unknown"),
        "family_model_stepping": [fields.get(n, "") for n in ("cpu family", "model", "stepping")],
        "cores": len(os.sched_getaffinity(0)),
        "flags": [flag for flag in FLAGS_THAT_MATTER if flag in flags],
        "memory_gib": round(int(memory.split()[1]) / 2**20, 1),
        "load_average": os.getloadavg()[0],
    }

"""NVIDIA's tools on a machine with a GPU: where they are, and what nvidia-smi says."""
import glob
import os
import shutil
import subprocess

PLACES = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/nsight-compute/*",
          "/usr/local/cuda/nsight-compute*", "/usr/local/cuda-*/bin", "/usr/local/cuda-*/compute-sanitizer")
FACTS = {"name": "name", "driver": "driver_version", "sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem",
         "celsius": "temperature.gpu", "watts": "power.draw", "memory_used_mib": "memory.used",
         "memory_total_mib": "memory.total"}


def find_tool(name):
    """The path of a program of the CUDA toolkit, or None."""
    if path := shutil.which(name):
        return path
    home = os.environ.get("CUDA_HOME")
    for place in ([f"{home}/bin"] if home else []) + list(PLACES):
        for path in sorted(glob.glob(f"{place}/{name}"), reverse=True):
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                return path
    return None


def query(device):
    """Facts about "cuda:N", or {} where there is none. Only asks, changes nothing."""
    smi = find_tool("nvidia-smi")
    if smi is None or not device.startswith("cuda"):
        return {}
    index = device.partition(":")[2] or "0"
    answer = subprocess.run([smi, f"--query-gpu={','.join(FACTS.values())}", "--format=csv,noheader,nounits", "-i", index],
                            capture_output=True, text=True, check=False)
    values = [value.strip() for value in answer.stdout.strip().split(",")]
    if answer.returncode != 0 or len(values) != len(FACTS):
        return {}
    return {name: _number(value) for name, value in zip(FACTS, values)}


def _number(text):
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text

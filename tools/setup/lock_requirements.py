#!/usr/bin/env python3
"""Writes tools/setup/requirements-NAME.txt: every package that the given ones need, pinned and with its sha256.

  lock_requirements.py clients openai huggingface_hub numpy tokenizers==0.23.3
  lock_requirements.py bench numpy
  lock_requirements.py parity sentence-transformers transformers torch safetensors numpy
  lock_requirements.py peers openvino ctranslate2 onnx onnxruntime sentence-transformers transformers torch safetensors numpy
  lock_requirements.py llama scikit-build-core
  lock_requirements.py infinity infinity-emb[server,optimum,torch]==0.0.78 optimum==1.24.0 transformers==4.48.3
      torch==2.6.0 onnx pyarrow==19.0.1 fastapi==0.115.12

Infinity's list holds old versions on purpose. Its fast attention for torch (BetterTransformer) needs optimum below 2 and
transformers below 4.49; that optimum was written for the torch of its time, and Infinity for that FastAPI; newer pyarrow
does not work with the numpy below 2 that Infinity asks for.

Wheels only, for Linux on x86-64 and the Pythons of Debian 12 (3.11) and Ubuntu 24.04 (3.12). Asks the package index;
run by hand when a version is to change.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PYTHONS = ("3.11", "3.12")


def resolve(packages, python):
    """{(name, version): sha256} of what pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run",
                   "--ignore-installed", "--target", folder, "--report", str(report), "--only-binary=:all:",
                   "--python-version", python, "--implementation", "cp", "--platform", "manylinux2014_x86_64"]
        for glibc in ("2_17", "2_27", "2_28", "2_34"):
            command += ["--platform", f"manylinux_{glibc}_x86_64"]
        subprocess.run([*command, *packages], check=True)
        found = {}
        for item in json.loads(report.read_text())["install"]:
            name = re.sub("[-_.]+", "-", item["metadata"]["name"]).lower()
            digest = item["download_info"]["archive_info"]["hash"]
            assert digest.startswith("sha256="), digest
            found[(name, item["metadata"]["version"])] = digest[len("sha256="):]
        return found


def main(arguments):
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    name, packages = arguments[0], arguments[1:]
    hashes = {}
    for python in PYTHONS:
        wanted = packages if not hashes else [f"{n}=={v}" for n, v in hashes]
        for key, digest in resolve(wanted, python).items():
            hashes.setdefault(key, set()).add(digest)
    lines = [f"# Written by: tools/setup/lock_requirements.py {' '.join(arguments)}"]
    for (package, version), digests in sorted(hashes.items()):
        lines.append(f"{package}=={version} " + " ".join(f"--hash=sha256:{d}" for d in sorted(digests)))
    (FOLDER / f"requirements-{name}.txt").write_text("\n".join(lines) + "\n")
    print(f"requirements-{name}.txt: {len(hashes)} packages")


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""clang-tidy over our own .cc files, in parallel; a file is not looked at again until something it sees has changed.

  lint.py --build build/release [--also build/cuda] [--jobs N] [FILE...]

Files that only the folders of --also build are checked with their commands there; where such a folder does not exist, as
without nvcc, its files are left out, and that is said. Sources in CUDA (.cu) are not checked: clang 14 does not know the toolkit.

A file's key is the hash of .clang-tidy, the clang-tidy version, its compile command, and the contents of every file of
the project that it includes, which the compiler wrote down when it built the file. Files that passed leave their key in
build/lint-cache. Exit code 1 when anything was found.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build/lint-cache"
CLANG_TIDY = "clang-tidy-14"
# What g++ knows and clang does not.
DROPPED_FLAGS = {"-Wno-tsan", "-fno-canonical-system-headers"}


def project_includes(build: Path) -> dict:
    """{object file: files of the project it was built from}, from ninja's own record."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if line.startswith("    "):
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build"):
                found[current].append(path)
        elif ":" in line:
            current = line.split(":")[0]
            found[current] = []
    return found


def own_commands(build: Path) -> list:
    """(source, object, compiler arguments) of each of our files, every source once."""
    seen, commands = set(), []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if source in seen or not source.is_relative_to(ROOT) or source.is_relative_to(ROOT / "build"):
            continue
        if source.suffix != ".cc" or not source.exists():
            continue
        seen.add(source)
        arguments = shlex.split(entry["command"])
        if os.path.basename(arguments[0]) == "ccache":
            arguments = arguments[1:]
        target = arguments[arguments.index("-o") + 1]
        commands.append((source, target, [a for a in arguments if a not in DROPPED_FLAGS]))
    return commands


def own_files(folders: list):
    """(source, compiler arguments, files of the project that it sees) by the first folder that builds it."""
    seen = set()
    for folder in folders:
        build = folder.resolve()
        if not (build / "compile_commands.json").exists():
            print(f"lint: {folder} is not there: files that only it builds are left out", flush=True)
            continue
        includes = project_includes(build)
        for source, target, command in own_commands(build):
            if source not in seen:
                seen.add(source)
                yield source, command, includes.get(target)


def is_proof(source: Path) -> bool:
    """Tests, fuzzers, benchmarks and what only they use."""
    relative = source.relative_to(ROOT)
    return relative.parts[0] in ("bench", "testing", "tests") or bool(re.search(r"_(test|fuzz|bench)\.cc$", relative.name))


def key_of(arguments: list, files: list, settings: bytes) -> str:
    digest = hashlib.sha256(settings + "\0".join(arguments).encode())
    for file in sorted(set(files)):
        digest.update(str(file).encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def check(source: Path, arguments: list) -> tuple:
    started = time.monotonic()
    config = f"--config-file={ROOT / '.clang-tidy'}"
    run = subprocess.run([CLANG_TIDY, "--quiet", config, str(source), "--", *arguments],
                         capture_output=True, text=True, cwd=ROOT)
    noise = re.compile(r"^(?:\d+ warnings?.*generated\.|Suppressed .*|Use -header-filter.*|)$")
    lines = [line for line in (run.stdout + run.stderr).splitlines() if not noise.match(line)]
    return run.returncode == 0, "\n".join(lines), time.monotonic() - started


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--also", type=Path, action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--product", action="store_true", help="leave out tests, fuzzers and benchmarks: half the time")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    wanted = {f.resolve() for f in arguments.files}
    version = subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)

    work, fresh = [], 0
    for source, command, files in own_files([arguments.build, *arguments.also]):
        if (wanted and source not in wanted) or (arguments.product and is_proof(source)):
            continue
        stamp = CACHE / key_of(command, [source, *files], settings) if files else None
        if stamp is not None and stamp.exists():
            fresh += 1
        else:
            work.append((source, command, stamp))
    # The largest first, so that no core waits for one at the end.
    work.sort(key=lambda item: -item[0].stat().st_size)
    print(f"lint: {len(work)} files to check, {fresh} unchanged since they passed", flush=True)

    failed, printed, started = 0, set(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = {pool.submit(check, source, command): (source, stamp) for source, command, stamp in work}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            source, stamp = futures[future]
            ok, output, seconds = future.result()
            print(f"[{done}/{len(work)} {time.monotonic() - started:.0f}s] {source.relative_to(ROOT)} {seconds:.1f}s",
                  flush=True)
            if ok and stamp is not None:
                stamp.touch()
            if not ok:
                failed += 1
                # A finding in a header comes back from every file that includes it.
                for finding in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:error|warning): )", output):
                    if finding.strip() and finding not in printed:
                        printed.add(finding)
                        print(finding.rstrip(), flush=True)
    print(f"lint: {failed} of {len(work)} files have findings" if failed else "lint: clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

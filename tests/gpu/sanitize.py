#!/usr/bin/env python3
"""compute-sanitizer over our kernels: memcheck (accesses) and racecheck (hazards in shared memory).

  sanitize.py [--programs DIR] [--device cuda:0] [--seconds 300] [--quick]

Programs: the ops' conformance tests, and engine_timing with tiny models, with steps launched one by one and captured. Each is
run without a tool first, which also measures what is measured once per machine. Reports are counted by kernel; those of
EXCLUDED are shown and do not fail. Each run is ended after --seconds. --quick takes fewer tests and one model. Needs numpy.
Exit code 1 when something was reported or a tool is missing.
"""
import argparse
import collections
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import device_tools  # noqa: E402

TOOLS = ("memcheck", "racecheck")
# Every kind of kernel, few cases of each: a case takes seconds under racecheck.
TESTS = "Gpu/*"
QUICK_TESTS = ("Gpu/NormTest*:Gpu/PoolingTest*:Gpu/ActivationTest*:Gpu/EmbeddingTest*:Gpu/FinishRowsTest*:"
               "Gpu/AttentionTest.LengthsAroundOneBlockOfKeys*")
MODELS = {"small qwen3": ["--shape", "small-qwen3", "--family", "qwen3-bidirectional"], "tiny bert": ["--family", "bert"]}
# (tool, kernel's name, why its reports are not ours to mend)
EXCLUDED = ()
ALL_OF_TOOL = {"memcheck": ["--leak-check", "no"], "racecheck": ["--racecheck-report", "all"]}


def read_reports(text):
    """Counter of (kind, kernel): each report of compute-sanitizer but its summary, by its first line and the kernel named first."""
    reports, current = collections.Counter(), None
    for line in text.splitlines():
        body = re.sub(r"^=+ ?", "", line) if line.startswith("=========") else None
        if body is None or body.startswith(("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY")):
            continue
        if re.match(r"(Invalid|Error:|Warning:|Program hit|Uninitialized|Internal|Target application|Fatal|Misaligned)", body):
            current = [kind_of(body), None]
            if kernel := kernel_in(body):
                current[1] = kernel
                reports[tuple(current)] += 1
                current = None
            elif body.startswith(("Program hit", "Internal", "Target", "Fatal")):
                reports[(current[0], "")] += 1
                current = None
        elif current is not None and (kernel := kernel_in(body)):
            reports[(current[0], kernel)] += 1
            current = None
    if current is not None:
        reports[(current[0], "")] += 1
    return reports


def kind_of(body):
    return re.sub(r" (between|at|on) .*| of size.*", "", body)[:60].strip()


def kernel_in(body):
    """`NormKernel` in "at void bouquet::(anonymous namespace)::NormKernel<8>(Args)+0x90 in norm.cu:87"."""
    found = re.search(r"\b(?:access )?at (?:void )?([^+]+?)(?:\+0x|\s+in\s|$)", body)
    if not found:
        return None
    name = found.group(1).replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    name = re.split(r"[<(]", name, maxsplit=1)[0].rsplit("::", 1)[-1].strip()
    return name or None


def is_excluded(tool, kernel):
    return any(tool == of and re.search(pattern, kernel) for of, pattern, _ in EXCLUDED)


def run(sanitizer, tool, name, command, seconds):
    """Prints one line per run and its reports. True when nothing of ours was reported."""
    started = time.time()
    try:
        done = subprocess.run([sanitizer, "--tool", tool, *ALL_OF_TOOL[tool], "--print-limit", "20", *command],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as late:
        last = ((late.stdout or b"").decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        print(f"{tool} {name}: FAILED, not done after {seconds} s; the last it said: {last[:150]}", flush=True)
        return False
    text = done.stdout + done.stderr
    reports = read_reports(text)
    ours = {key: count for key, count in reports.items() if not is_excluded(tool, key[1])}
    summary = re.search(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", text)
    tests = re.search(r"\[  PASSED  \] \d+ tests?", text)
    has_run = tests is None or " 0 tests" not in tests.group(0)
    is_ok = done.returncode == 0 and summary is not None and has_run and not ours
    print(f"{tool} {name}: {summary.group(1) if summary else 'no summary'}{', ' + tests.group(0) if tests else ''}, exit code "
          f"{done.returncode}, {time.time() - started:.0f} s: {'ok' if is_ok else 'FAILED'}", flush=True)
    for (kind, kernel), count in sorted(reports.items()):
        print(f"    {count} x {kind} in {kernel or 'no kernel'}{'' if (kind, kernel) in ours else ' (excluded)'}")
    if not is_ok:
        print("\n".join("    | " + line for line in text.splitlines()[-40:] if "SUMMARY" not in line), flush=True)
    return is_ok


def runs_at_all(name, command, seconds):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        print(f"without a tool, {name}: FAILED, not done after {seconds} s", flush=True)
        return False
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-1500:]
        print(f"without a tool, {name}: FAILED with exit code {done.returncode}\n{said}", flush=True)
    return done.returncode == 0


def runs(programs, device, scratch, is_quick):
    """[(name, command)]"""
    import make_random_model
    from engine_process import request_line
    tests = QUICK_TESTS if is_quick else TESTS
    found = [("ops", [f"{programs}/rose_backend_test", f"--gtest_filter={tests}", "--gtest_brief=1"])]
    lengths = ([1], [17, 3, 64], [130, 5])
    batches = [[[5 + i % 200 for i in range(n)] for n in batch] for batch in lengths]
    requests = Path(scratch) / "requests"
    requests.write_text(request_line(batches, repeat=3, under_way=1 if device == "cpu" else 2))
    for name, arguments in list(MODELS.items())[: 1 if is_quick else None]:
        folder = Path(scratch) / name.replace(" ", "-")
        make_random_model.write_model(folder, make_random_model.parse([str(folder), *arguments]))
        for graphs in ("off", "lazy"):
            found.append((f"{name}, graphs {graphs}",
                          [f"{programs}/engine_timing", str(folder), f"device={device}", f"graphs={graphs}",
                           "max_step_tokens=512", f"requests={requests}"]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    sanitizer = device_tools.find_tool("compute-sanitizer")
    if sanitizer is None:
        print("sanitize: FAILED, compute-sanitizer is not on this machine: it comes with the CUDA toolkit")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        todo = runs(options.programs or default_programs(), options.device, scratch, options.quick)
        results = [runs_at_all(name, command, options.seconds) for name, command in todo]
        results += [run(sanitizer, tool, name, command, options.seconds) for tool in TOOLS for name, command in todo]
    for tool, pattern, why in EXCLUDED:
        print(f"excluded from {tool}: {pattern}: {why}")
    print(f"sanitize: {sum(results)} of {len(results)} runs ok")
    return 0 if all(results) else 1


def default_programs():
    from engine_process import default_folder
    return default_folder(ROOT)


if __name__ == "__main__":
    sys.exit(main())

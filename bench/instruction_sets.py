"""What a step costs with the kernels of lesser processors, run on this one: rose/backend/cpu/step_bench.cc."""
import json
import subprocess

# One short query, one longer, and a full batch.
CELLS = "sequences:1/tokens:8|sequences:1/tokens:32|sequences:4/tokens:256"
REPETITIONS = 3
ORDER = ("best", "avx512", "avx2", "plain")


def measure(binary):
    """Rows of medians; an instruction set that this processor lacks has none."""
    run = subprocess.run(
        [binary, f"--benchmark_filter=^Step/.*/({CELLS})/threads:1/", f"--benchmark_repetitions={REPETITIONS}",
         "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.1", "--benchmark_format=json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    rows = parse(json.loads(run.stdout)["benchmarks"])
    for row in rows:
        print(f"  {row['isa']:12} {row['dtype']:9} {row['sequences']} x {row['tokens']:3} tokens: {row['ms']:7.2f} ms, "
              f"{100 * row['of_peak_busy']:.0f} % of what it can multiply", flush=True)
    return rows


def parse(benchmarks):
    """Of Google Benchmark's list, in an order for reading; names are Step/DTYPE[_ISA]/sequences:N/tokens:N/threads:N/..."""
    rows = []
    for found in benchmarks:
        if found.get("aggregate_name") != "median" or found.get("error_occurred"):
            continue
        _, kernels, sequences, tokens, *_ = found["run_name"].split("/")
        dtype, _, isa = kernels.partition("_")
        rows.append({"isa": isa or "best", "dtype": {"f32": "float32", "bf16": "bfloat16"}[dtype],
                     "sequences": int(sequences.partition(":")[2]), "tokens": int(tokens.partition(":")[2]),
                     "ms": found["real_time"], "cpu_ms": found["cpu_ms"], "of_peak_busy": found["busy"]})
    return sorted(rows, key=lambda row: (row["dtype"] != "float32", ORDER.index(row["isa"]), row["sequences"] * row["tokens"]))

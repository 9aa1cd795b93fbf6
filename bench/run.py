#!/usr/bin/env python3
"""`./dev bench [ITEM...]`: measures the program's own parts in one run and writes bench/results/DATE.json.

Items: gateway (Ivy without an engine against a bare Beast echo), embed (a file of 2,000 lines), grpc-hop (a chunk over
gRPC against a bare gRPC echo), stages (where the time of a short query goes), null (requests a second and core without an
engine), overload (twice the capacity), isa (a step with the kernels of lesser processors). Default: all.
"""
import argparse
import datetime
import sys
from pathlib import Path

import instruction_sets
import machine
import result_file
import service_items
import split_items
from wrk import LoadFailed

ROOT = Path(__file__).resolve().parents[1]
ITEMS = ("gateway", "embed", "grpc-hop", "stages", "null", "overload", "isa")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("items", nargs="*", metavar="ITEM", help=", ".join(ITEMS))
    parser.add_argument("--model", default=str(ROOT / "build/models/all-MiniLM-L6-v2"))
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/bench", help="folder of what is measured")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results")
    arguments = parser.parse_args()
    items = arguments.items or ITEMS
    if unknown := set(items) - set(ITEMS):
        parser.error(f"unknown item: {', '.join(unknown)}")
    if not (arguments.binaries / "bouquet").exists():
        parser.error(f"no binaries in {arguments.binaries}: ./dev bench builds them")

    bouquet = str(arguments.binaries / "bouquet")

    now = datetime.datetime.now(datetime.timezone.utc)
    result = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": machine.commit(),
              "command": "./dev bench " + " ".join(items), "machine": machine.describe(),
              "model": Path(arguments.model).name, "dtype": "float32"}
    if "gateway" in items:
        print("the gateway alone", flush=True)
        result["gateway"] = service_items.gateway_alone(str(arguments.binaries / "null_service"),
                                                        str(arguments.binaries / "beast_echo"), arguments.model)
    if "embed" in items:
        print("bouquet embed of a file", flush=True)
        result["embed"] = service_items.embed_file(arguments.binaries, arguments.model)
    if "grpc-hop" in items:
        print("a chunk over gRPC", flush=True)
        result["grpc_hop"] = split_items.grpc_hop(str(arguments.binaries / "grpc_hop"))
    if "stages" in items:
        print("where the time of a short query goes", flush=True)
        result["ivy_stages"] = split_items.ivy_stages(str(arguments.binaries / "ivy_stages"),
                                                      str(arguments.binaries / "beast_echo"), arguments.model)
    if "null" in items:
        print("one core without an engine", flush=True)
        result["null_rates"] = split_items.null_rates(arguments.binaries, arguments.model)
    if "overload" in items:
        print("twice the capacity", flush=True)
        result["overload"] = split_items.overload(bouquet, arguments.model)
    if "isa" in items:
        print("a step with the kernels of lesser processors", flush=True)
        result["instruction_sets"] = instruction_sets.measure(str(arguments.binaries / "rose_backend_bench"))

    result_file.say_written(result_file.write(result, arguments.out, now.strftime("%Y-%m-%d-%H%M")))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LoadFailed as why:
        sys.exit(f"bench: {why}")

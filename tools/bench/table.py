#!/usr/bin/env python3
"""Runs bench_codec and prints its table as docs/benchmarks.md has it: rates, and ratios to the baselines of the same run.

Usage: tools/bench/table.py [build/release/bin/bench_codec] [--repetitions N]

Each row is the best of its repetitions, which are interleaved at random, so that what disturbs the machine disturbs all rows
alike. Rates are per core by the processor's time, except for `publish`, which uses several threads and is in real time.
Only the standard library is used.
"""
import argparse
import json
import pathlib
import platform
import re
import subprocess

READ, COPY = "read_both", "copy_memory"
ORDER = [READ, COPY, "hash", "scan", "encode", "publish", "decode_only", "decode_verify_apply"]


def best_rates(document):
    """Name -> (bytes per second of the best repetition, the counters)."""
    rates = {}
    for run in document["benchmarks"]:
        if run.get("error_occurred"):
            raise SystemExit(f"error: {run['name']} failed: {run['error_message']}")
        if run["run_type"] != "iteration":
            continue
        name = run["run_name"].removesuffix("/real_time")
        if name not in rates or run["bytes_per_second"] > rates[name][0]:
            rates[name] = (run["bytes_per_second"], run)
    return rates


def first_line(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def machine():
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
    model = re.search(r"model name\s*: (.*)", cpu)
    flags = [flag for flag in ("avx2", "avx512f", "avx512_vbmi2", "gfni", "asimd") if re.search(rf"\b{flag}\b", cpu)]
    return (f"{model.group(1) if model else platform.machine()}, {cpu.count('processor')} cores, "
            f"{memory / (1 << 20):.0f} GiB of memory, {' '.join(flags)}; Linux {platform.release()}; {first_line('g++', '--version')}")


def table(rates):
    lines = ["| what | changed % | payload % | GB/s of dense | of read_both | of copy_memory |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name in sorted(rates, key=lambda name: (ORDER.index(name.split("/")[0]), name)):
        rate, run = rates[name]
        counters = [f"{run[key]:.3g}" if key in run else "" for key in ("changed_%", "payload_%")]
        lines.append(f"| {name} | {counters[0]} | {counters[1]} | {rate / 1e9:.2f} | {rate / rates[READ][0]:.2f} | "
                     f"{rate / rates[COPY][0]:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="build/release/bin/bench_codec")
    parser.add_argument("--repetitions", type=int, default=40)
    options = parser.parse_args()
    done = subprocess.run(
        [options.program, "--benchmark_format=json", f"--benchmark_repetitions={options.repetitions}",
         "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.01"],
        stdout=subprocess.PIPE, check=True)
    document = json.loads(done.stdout)
    load = document["context"].get("load_avg", [0])[0]
    print(f"{machine()}; load average {load:.1f} at the start\n")
    print(table(best_rates(document)))


if __name__ == "__main__":
    main()

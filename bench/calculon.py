#!/usr/bin/env python3
"""GPT-3 175B, batch 1536, on A100s: the searched plan against the plans that Calculon publishes as its best.

  bench/calculon.py build/release/foreshard

Calculon's degrees, micro-batch and chunks are kept, everything else is the best choice; both are simulated, with a reserve of 0
and of 6 of 80 GiB. Prints a table in Markdown; exits with 1 where the searched plan is the slower one.
"""
import json
import subprocess
import sys

# calculon-ai/calculon, best plans for 80 GB A100s: GPUs, nodes of eight, and the plan
PLANS = [
    (4096, dict(tp=8, pp=4, dp=128, micro_batch=3, virtual_stages=24)),
    (1024, dict(tp=8, pp=4, dp=32, micro_batch=2, virtual_stages=8)),
    (512, dict(tp=4, pp=4, dp=32, micro_batch=3, virtual_stages=12)),
]


def search(program, gpus, reserve, fixed):
    command = [program, "search", "--model", "gpt3-175b", "--cluster", "dgx-a100", "--nodes", str(gpus // 8),
               "--global-batch", "1536", "--reserve", reserve, "--json", "--progress", "none"]
    for path, value in fixed.items():
        command += ["--fix", f"{path}={value}"]
    answer = subprocess.run(command, capture_output=True, text=True)
    results = json.loads(answer.stdout).get("results") if answer.stdout else None
    return results[0] if results else None


def cell(found):
    if found is None:
        return "does not fit | "
    s = found["strategy"]
    recompute = s.get("recompute", {}).get("kind", "none")
    recompute = "best" if recompute == "each" else recompute  # layer by layer, as the search fills memory
    plan = f"tp {s['tp']}, pp {s['pp']}, dp {s['dp']}, micro-batch {s['micro_batch']}, {s['virtual_stages']} chunks"
    return f"{plan}, recompute {recompute} | {found['simulated'] or found['estimate']['time_s']:.3f}"


def main():
    worse = False
    print("| GPUs | reserve | winner | seconds | Calculon's plan | seconds |\n|---|---|---|---|---|---|")
    for gpus, plan in PLANS:
        for name, reserve in (("0", "0"), ("6 GiB", "7.5%")):
            mine, theirs = search(sys.argv[1], gpus, reserve, {}), search(sys.argv[1], gpus, reserve, plan)
            print(f"| {gpus} | {name} | {cell(mine)} | {cell(theirs)} |", flush=True)
            worse |= theirs is not None and (mine is None or mine["simulated"] > theirs["simulated"])
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Records what foreshard answers, so that a rebuild can be held against it.

    bench/answers/record.py simulate PROGRAM FILE.csv [--count 500]   500 random strategies, simulated
    bench/answers/record.py search   PROGRAM FILE.csv                 winners of the jobs of docs/search.md, with their CPU time
    bench/answers/record.py compare  BEFORE.csv AFTER.csv             prints what differs; exit status 1 if an answer does

simulate.csv and search.csv are the answers of commit 4af45a4, before the rebuild of the inside; CPU seconds on a busy machine.

The random strategies are made from a fixed seed, so two programs answer the same questions. A simulated time may differ by 1e-9 of
itself, a refusal may not become an answer. Winners: simulated time and CPU time after / before, per job.
"""
import argparse
import csv
import json
import pathlib
import random
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAME = 1e-9
SIMULATED = ["job", "rc", "iteration_s", "peak_bytes", "bubble", "refusal"]
SEARCHED = ["job", "simulated_s", "cpu_s", "strategy"]

MODELS = {"gpt2-124m": 12, "gpt2-355m": 24, "gpt2-1.5b": 48, "bert-large": 24, "llama-2-7b": 32, "llama-3-8b": 32, "llama-2-13b": 40,
          "megatron-18b": 40, "gpt3-175b": 96, "llama-3-70b": 80, "vgg-16": 37, "resnet-50": 175}
CLUSTERS = {"dgx-a100": 8, "dgx-h100-x2": 16, "dgx-a100-x4": 32, "eth25-a100-x2": 16, "pcie-a100-8": 8, "workstation-rtx4090-x4": 16,
            "dgx1-v100-x2": 16, "dgx-b200": 8, "dgx-a100-x16": 128, "eth100-a100-x2": 16}

# The jobs of docs/search.md.
SEARCHES = """gpt2-355m eth25-a100 32 --seq 512
gpt2-355m dgx-a100 64
gpt2-1.5b pcie-a100-8-x2 128
gpt2-355m eth25-a100-x2 64
gpt2-355m workstation-rtx4090-x4 64
gpt2-1.5b workstation-rtx4090-x4 512
gpt2-1.5b workstation-rtx4090-x8 256
gpt2-1.5b eth25-a100-x4 128
gpt2-1.5b eth25-a100-x8 256
llama-2-7b eth25-a100 64
llama-2-7b eth25-a100-x2 128
llama-2-13b eth25-a100-x4 256
llama-3-8b eth25-a100-x4 256
llama-2-70b eth25-a100-x8 512
llama-2-13b dgx-a100-x2 128
llama-2-13b dgx-h100-x4 128
llama-3-70b dgx-h100-x8 256
megatron-18b dgx-a100-x4 512
bert-large dgx-a100 256
gpt2-1.5b dgx-a100-x4 128
llama-3-8b dgx-h100-x2 32
llama-3-70b dgx-h100-x16 512
llama-3-70b gb200-nvl72 256
gpt3-175b dgx-a100-x64 256
gpt3-175b dgx-a100-x64 1536
gpt3-175b dgx-a100-x512 1536
vgg-16 pcie-a100-8 256
resnet-50 eth25-a100-x2 256""".splitlines()


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def random_job(rng):
    model, cluster = rng.choice(list(MODELS)), rng.choice(list(CLUSTERS))
    gpus = CLUSTERS[cluster]
    layers = model in ("vgg-16", "resnet-50")
    tp = 1 if layers else rng.choice([d for d in divisors(gpus) if d <= 8])
    cp = 1 if layers or model == "bert-large" or rng.random() < 0.85 else rng.choice([d for d in divisors(gpus // tp) if d <= 4])
    pp = rng.choice([d for d in divisors(gpus // tp // cp) if d <= min(16, MODELS[model])])
    dp = gpus // tp // cp // pp
    micro = rng.choice([1, 1, 2, 4])
    batch = micro * dp * rng.choice([1, 2, 4, 8, 12, 16])
    job = ["--model", model, "--cluster", cluster, "--tp", tp, "--pp", pp, "--cp", cp, "--micro-batch", micro, "--global-batch", batch,
           "--ignore-memory"]
    if pp > 1:
        schedule = rng.choice(["1f1b", "1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v"])
        job += ["--schedule", schedule]
        if schedule == "interleaved-1f1b":
            job += ["--virtual-stages", rng.choice([2, 3, 4])]
        if schedule == "zb-v":
            job += ["--virtual-stages", 2]
        if rng.random() < 0.1:
            job += ["--layer-split", "auto"]
    job += ["--zero", rng.choice([0, 0, 1, 1, 2, 3])]
    if dp > 2 and rng.random() < 0.15:
        job += ["--zero-group", rng.choice(divisors(dp)[:-1])]
    if tp > 1 and rng.random() < 0.5:
        job += ["--sequence-parallel"]
    if not layers:
        job += ["--recompute", rng.choice(["none", "none", "selective", "full", "full:1", "auto", "attention,norm", "rotor", "best"])]
        if rng.random() < 0.5:
            job += ["--seq", rng.choice([512, 1024])]
    if rng.random() < 0.5:
        job += ["--overlap", rng.choice(["none", "grad", "grad,p2p", "grad,param", "grad,param,p2p", "grad,param,p2p,tp"])]
    if rng.random() < 0.2:
        job += ["--clip-norm", 1]
    if rng.random() < 0.1:
        job += ["--granularity", rng.choice(["op", "stage"])]
    return [str(word) for word in job]


def run(program, words, limit):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run([program, *words, "--json"], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return 124, {}, "", limit
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    try:
        answer = json.loads(done.stdout) if done.stdout else {}
    except ValueError:
        answer = {}
    return done.returncode, answer, done.stderr.strip().splitlines()[0] if done.stderr.strip() else "", cpu


def simulate(program, path, count):
    rng = random.Random(2026)
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, SIMULATED, lineterminator="\n")
        rows.writeheader()
        answered = 0
        while answered < count:
            job = random_job(rng)
            rc, answer, said, _ = run(program, ["simulate", *job], 120)
            answered += rc == 0
            rows.writerow({"job": " ".join(job), "rc": rc, "iteration_s": repr(answer.get("iteration_time_s", "")) if rc == 0 else "",
                           "peak_bytes": answer["peak_memory_bytes"]["max"] if rc == 0 else "",
                           "bubble": f"{answer['bubble_fraction']:.9f}" if rc == 0 else "", "refusal": said[:100] if rc else ""})
            file.flush()
            print(f"\r{answered}/{count}", end="", file=sys.stderr)
    print(file=sys.stderr)


def search(program, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, SEARCHED, lineterminator="\n")
        rows.writeheader()
        for job in SEARCHES:
            model, cluster, batch, *more = job.split()
            words = ["search", "--model", model, "--cluster", cluster, "--global-batch", batch, *more, "--threads", "1", "--force"]
            rc, answer, said, cpu = run(program, words, 900)
            best = min((row for row in answer.get("results", []) if row.get("simulated")), key=lambda row: row["simulated"], default=None)
            rows.writerow({"job": job, "simulated_s": repr(best["simulated"]) if best else f"rc {rc}: {said}", "cpu_s": f"{cpu:.2f}",
                           "strategy": json.dumps(best["strategy"], separators=(",", ":")) if best else ""})
            file.flush()
            print(f"{job}: {best['simulated'] if best else rc} in {cpu:.2f} s", file=sys.stderr)


def compare(before_path, after_path):
    read = lambda path: {row["job"]: row for row in csv.DictReader(open(path, encoding="utf-8"))}
    before, after = read(before_path), read(after_path)
    differ = 0
    searched = "simulated_s" in next(iter(before.values()))
    slower, longer = [], []
    for job, old in before.items():
        new = after.get(job)
        if new is None:
            print(f"missing: {job}")
            differ += 1
        elif searched:
            try:
                slower.append(float(new["simulated_s"]) / float(old["simulated_s"]))
            except ValueError:
                print(f"{job}: {old['simulated_s']} -> {new['simulated_s']}")
                continue
            longer.append(float(new["cpu_s"]) / max(0.01, float(old["cpu_s"])))
            differ += slower[-1] > 1.003
            print(f"{job:45} {float(old['simulated_s']):10.5g} s  winner x{slower[-1]:.4f}  CPU {float(old['cpu_s']):6.2f} s  x{longer[-1]:.2f}")
        else:
            same = old["rc"] == new["rc"] and old["peak_bytes"] == new["peak_bytes"]
            if same and old["iteration_s"]:
                a, b = float(old["iteration_s"]), float(new["iteration_s"])
                same = abs(a - b) <= SAME * a and abs(float(old["bubble"]) - float(new["bubble"])) <= 1e-8
            if not same:
                differ += 1
                print(f"{job}\n  before {old}\n  after  {new}")
    if slower:
        print(f"winners: mean x{sum(slower) / len(slower):.5f}, worst x{max(slower):.4f}; CPU: mean x{sum(longer) / len(longer):.2f}, worst x{max(longer):.2f}")
    print(f"{len(before)} jobs, {differ} differ")
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "search", "compare"])
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    if args.what == "compare":
        return compare(args.first, args.second)
    if args.what == "simulate":
        simulate(args.first, args.second, args.count)
    else:
        search(args.first, args.second)
    return 0


sys.exit(main())

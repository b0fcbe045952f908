#!/usr/bin/env python3
"""What orders the runs of Hagemann et al. 2023 (Aleph Alpha) at best: times of layers fitted to the runs themselves.

    scripts/aleph_bound.py [data/measured/aleph_alpha.csv [PREDICTIONS.json]]

Within a sweep (one sequence length on one number of GPUs), with p stages, m micro-batches of b samples, t tensor-parallel ranks:

    time = (layers b + launch) (m + p - 1) / p + head b m + transfer m [p > 1] + update / (t p)

with one time of the layers for each (t, attention kernel, recomputation, sequence parallelism), one head and one launch for each t.
Printed for each sweep: how many of its pairs of runs this puts in the wrong order, without those that are measured less than 1 % apart, and
what our predictions do where they are given (the JSON of `foreshard validate --json --per-row`, as the second argument).
Standard library only.
"""
import collections
import csv
import itertools
import json
import pathlib
import re
import statistics
import sys

from least_squares import least_squares

ROOT = pathlib.Path(__file__).resolve().parent.parent


def terms_of(row):
    stages, samples, tensor = int(row["pp"]), int(row["micro_batch"]), int(row["tp"])
    waves = int(row["global_batch"]) // (int(row["dp"]) * samples)
    kernel = re.search("attention kernel: ([^;]*)", row["notes"]).group(1)
    layer = tensor, kernel, row["recompute"], row["sequence_parallel"]
    turns = (waves + stages - 1) / stages
    terms = {("layer", layer): samples * turns, ("launch", tensor): turns, ("head", tensor): samples * waves, "update": 1 / (tensor * stages)}
    return {**terms, "transfer": waves} if stages > 1 else terms


def wrong_pairs(measured, times):
    pairs = [(i, j) for i, j in itertools.combinations(range(len(measured)), 2) if abs(measured[i] / measured[j] - 1) >= 0.01]
    return sum((measured[i] < measured[j]) != (times[i] < times[j]) for i, j in pairs), len(pairs)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else ROOT / "data/measured/aleph_alpha.csv"
    predicted = {}
    if len(sys.argv) > 2:
        predicted = {(p["row_id"], p["quantity"]): p["predicted"] for p in json.load(open(sys.argv[2]))["predictions"]}
    sweeps = collections.defaultdict(list)
    for row in csv.DictReader(open(path)):
        if row["measured_quantity"] == "iter_time_s" and row["measured_value"] != "OOM":
            sweeps[row["seq_len"], row["num_gpus"]].append(row)
    for (length, gpus), rows in sorted(sweeps.items(), key=lambda item: -len(item[1])):
        measured, equations = [float(row["measured_value"]) for row in rows], [terms_of(row) for row in rows]
        answer = least_squares(equations, measured)
        times = [sum(x * answer[name] for name, x in terms.items()) for terms in equations]
        wrong, pairs = wrong_pairs(measured, times)
        error = statistics.median(abs(t / m - 1) for t, m in zip(times, measured))
        ours = [predicted.get((row["row_id"], "iter_time_s")) for row in rows]
        beside = f"; ours {wrong_pairs(measured, ours)[0]} wrong" if all(ours) else ""
        print(f"{length} tokens on {gpus} GPUs: {len(rows)} runs by {len(answer)} times, error {error:.1%} (median); "
              f"{wrong} of {pairs} pairs wrong ({1 - wrong / pairs:.1%} right){beside}")


main()

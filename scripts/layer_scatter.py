#!/usr/bin/env python3
"""What a perfect model could reach on vTrain's sweeps: the rows taken apart into the few times that they are made of.

    scripts/layer_scatter.py build/release/foreshard [data/measured/vtrain_single.csv]

The rows are iterations of 16 shapes on up to eight GPUs. With L layers, p stages, m micro-batches of b samples of 1024 tokens
on d replicas and P parameters on a rank, they obey

    time = layer(tp, b, h) (L / p) (m + p - 1) + head(tp, b, h) m + transfers(b, h, p) + update P + sum(d) P 2 (d - 1) / d + constant

with one layer and one head per (tp, b, h), 29 pairs with enough rows. They are solved for here by least squares of relative errors, as are our own
predictions. Printed: how well the formula holds, what each pair is measured and predicted, and the regret of choosing by our
predictions, by mixtures of measured and predicted terms, and by the smoothest account of the measured layers that there
is: ten coefficients fitted to those very layers. Standard library only.
"""
import collections
import csv
import itertools
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys

from least_squares import least_squares, solve

SEQ, VOCABULARY = 1024, 50257
LEAST_ROWS = 4  # of a pair: fewer do not tell its layer from its head
ROOT = pathlib.Path(__file__).resolve().parent.parent


class Row:
    def __init__(self, cells, predicted):
        number = {name: int(cells[name]) for name in ("tp", "pp", "dp", "layers", "hidden", "micro_batch", "global_batch", "num_gpus")}
        self.group = number["tp"], number["micro_batch"], number["hidden"]
        self.sweep = number["layers"], number["hidden"], number["num_gpus"], number["global_batch"]
        tp, batch, hidden = self.group
        stages, replicas = number["pp"], number["dp"]
        waves = number["global_batch"] // (batch * replicas)
        layers = number["layers"] / stages
        ends = 2 if stages == 1 else 1  # embedding and projection are matrices of their own
        parameters = (layers * 12 * hidden * hidden + ends * VOCABULARY * hidden) / tp
        sent = 2 * (stages - 1) * 2 * batch * SEQ * hidden  # while the pipeline fills and drains
        self.terms = {("layer", self.group): layers * (waves + stages - 1), ("head", self.group): waves,
                      "transfer": sent * 1e-9, "update": parameters * 1e-9, "constant": 1.0}
        if replicas > 1:
            self.terms["sum", replicas] = parameters * 1e-9 * 2 * (replicas - 1) / replicas
        self.measured, self.predicted = float(cells["measured_value"]), predicted


def value_of(row, answer):
    return sum(x * answer[name] for name, x in row.terms.items())


def sweeps_of(rows):
    sweeps = collections.defaultdict(list)
    for row in rows:
        sweeps[row.sweep].append(row)
    return [sweep for sweep in sweeps.values() if len(sweep) >= 3]


def regret(rows, key):
    return statistics.fmean(min(sweep, key=key).measured / min(row.measured for row in sweep) - 1 for sweep in sweeps_of(rows))


def order(rows, key):
    """The share of pairs in the right order, without those that are measured less than 1 % apart."""
    pairs = [(a, b) for sweep in sweeps_of(rows) for b, a in itertools.combinations(sweep, 2) if abs(a.measured / b.measured - 1) >= 0.01]
    return statistics.fmean((a.measured < b.measured) == (key(a) < key(b)) for a, b in pairs)


def smooth(layers):
    """ln of the layers' times by a full quadratic in the logarithms of (tp, batch, hidden): ten coefficients."""
    def powers(group):
        x = [1.0, *(math.log2(v) for v in group)]
        x[3] -= 10.5  # both hidden sizes alike far from 0
        pairs = itertools.combinations_with_replacement(range(4), 2)
        return {pair: x[pair[0]] * x[pair[1]] for pair in pairs if pair != (3, 3)}  # two hidden sizes: no square
    ones = {group: powers(group) for group in layers}
    names = sorted(next(iter(ones.values())))
    normal = [[sum(p[a] * p[b] for p in ones.values()) for b in names] for a in names]
    right = [sum(p[a] * math.log(layers[group]) for group, p in ones.items()) for a in names]
    answer = dict(zip(names, solve(normal, right)))
    return {group: math.exp(sum(p[name] * answer[name] for name in names)) for group, p in ones.items()}


def read(program, path):
    run = subprocess.run([program, "validate", "--json", "--per-row", path], capture_output=True, text=True, check=True)
    predictions = {p["row_id"]: p["predicted"] for p in json.loads(run.stdout)["predictions"]}
    with open(path, newline="") as stream:
        rows = [Row(cells, predictions[cells["row_id"]]) for cells in csv.DictReader(stream) if cells["row_id"] in predictions]
    sizes = collections.Counter(row.group for row in rows)
    return [row for row in rows if sizes[row.group] >= LEAST_ROWS]


def print_scatter(rows, measured, layers, rounds=100):
    dice = random.Random(1)
    for percent in (2, 4, 6, 8, 10, 12):
        found = []
        for _ in range(rounds):
            other = {**measured, **{("layer", g): t * math.exp(dice.gauss(0, percent / 100)) for g, t in layers.items()}}
            found.append(100 * regret(rows, lambda row: value_of(row, other)))
        print(f"  layers known to {percent:2} %: {statistics.fmean(found):.1f} +- {statistics.pstdev(found):.1f} %")


def print_rates(layers):
    flops = lambda h: 24 * SEQ * h * h + 4 * SEQ * SEQ * h
    more = (layers[1, 8, 2048] - layers[1, 8, 1024]) / 8
    rate = (flops(2048) - flops(1024)) / more * 1e-12
    print(f"one GPU, micro-batches of 8: a layer and sample takes {1e3 * more:.2f} ms more at hidden size 2048 than at 1024: "
          f"{4 * rate:.0f} TFLOP/s if layers are recomputed, {3 * rate:.0f} if not")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = read(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "data/measured/vtrain_single.csv"))
    measured = least_squares([row.terms for row in rows], [row.measured for row in rows])
    ours = least_squares([row.terms for row in rows], [row.predicted for row in rows])
    errors = [value_of(row, measured) / row.measured - 1 for row in rows]
    print(f"{len(rows)} rows by {len(measured)} times: standard deviation {100 * statistics.pstdev(errors):.2f} %, "
          f"largest {100 * max(map(abs, errors)):.1f} %")
    print(f"transfers between stages: twice their bytes at {2 / measured['transfer']:.1f} GB/s")
    layers = {group: measured["layer", group] for _, group in (n for n in measured if n[0] == "layer")}
    smoothed = smooth(layers)
    print_rates(layers)
    print("(tp, micro-batch, hidden): ms per layer measured, smooth, predicted; head measured, predicted")
    for group, time in sorted(layers.items(), key=lambda item: (item[0][2], item[0])):
        print(f"  {str(group):>14} {1e3 * time:6.2f} {1e3 * smoothed[group]:6.2f} {1e3 * ours['layer', group]:6.2f}"
              f"  {1e3 * measured['head', group]:6.2f} {1e3 * ours['head', group]:6.2f}")
    spread = lambda other: 100 * statistics.pstdev(math.log(other[g] / layers[g]) for g in layers)
    print(f"layers: smooth against measured {spread(smoothed):.1f} %, predicted against measured "
          f"{spread({g: ours['layer', g] for g in layers}):.1f} %")
    swap = lambda times: lambda row: row.predicted + row.terms["layer", row.group] * (times[row.group] - ours["layer", row.group])
    rest = lambda times: lambda row: value_of(row, {**measured, ("layer", row.group): times[row.group]})
    print("regret of choosing by, and pairs in the right order")
    for name, key in (("our predictions", lambda row: row.predicted),
                      ("our predictions with the measured layers", swap(layers)),
                      ("our predictions with the smooth layers", swap(smoothed)),
                      ("our layers, all else measured", rest({g: ours["layer", g] for g in layers})),
                      ("the smooth layers, all else measured", rest(smoothed)),
                      ("the formula with all of its times measured", rest(layers))):
        print(f"  {name}: {100 * regret(rows, key):.1f} %, {100 * order(rows, key):.1f} %")
    print_scatter(rows, measured, layers)


main()

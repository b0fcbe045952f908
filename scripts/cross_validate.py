#!/usr/bin/env python3
"""Cross-validation by source: what the fitted constants are worth on rows that they were not fitted on.

    scripts/cross_validate.py build/release/foreshard [--json] [--load FILE] [--notes accuracy/sources.json]

For every source of data/measured, the constants of accuracy/constants.json that name it are fitted again on the other sources
that they name; one that names no other takes what its entry says one would assume without. The source is then predicted with
those. Printed per source: median error in sample and left out, the guard (1.5 times the median that the source has to reach), and the
ratio of the two.

The fit: from runs with every constant below and above its value, ln(prediction) of a row is interpolated in each constant and
summed over the constants; coordinate descent over a grid minimises the mean over cells of the median error. The last
prediction, that of the source left out, is a run of its own.
"""
import argparse
import collections
import csv
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUARD = 1.5
FLOOR = 0.03  # medians below this are within the noise of the measurements: a ratio of them says nothing
# Medians to reach: 5 % where configurations are complete, 8 % where the host is the limit, 10 % as the mean over all cells.
WANTED = {"Megatron-LM SC'21 Table 1": 0.05, "Korthikanti et al. 2022 (arXiv:2205.05198)": 0.05,
          "Hagemann et al. 2023 (Aleph Alpha) layout sweep": 0.05, "mosaicml/llm-foundry": 0.05, "pytorch/torchtitan": 0.05,
          "NVIDIA DGX Cloud benchmarking recipes": 0.05, "Zero Bubble Pipeline Parallelism (ICLR 2024)": 0.05,
          "vTrain (MICRO 2024) ground truth, single node": 0.08}
WANTED_MEAN = 0.10
GRID = 9
PASSES = 2
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
RATES = {"tokens_per_s_per_gpu", "samples_per_s", "samples_per_s_per_gpu", "tflops_per_gpu", "mfu"}


def number(value):
    if isinstance(value, str):
        amount, unit = value.split()
        return float(amount) * UNITS[unit]
    return float(value)


def without_comments(text):
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


class Program:
    """`foreshard validate` with constants of our choice, on the rows of time only."""

    def __init__(self, program, folder):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(folder)
        for name in ("models", "topologies", "frameworks", "accuracy"):
            shutil.copytree(ROOT / name, self.folder / name)
        self.table = json.loads(without_comments((ROOT / "accuracy/constants.json").read_text()))
        self.files = collections.defaultdict(list)  # source: its files, rows of time only
        for path in sorted((ROOT / "data/measured").glob("*.csv")):
            with open(path, newline="") as stream:
                rows = list(csv.DictReader(stream))
            for source in sorted({row["source"] for row in rows}):
                own = [row for row in rows if row["source"] == source and "mem" not in row["measured_quantity"]
                       and row["measured_value"] != "OOM"]
                if not own:
                    continue
                name = self.folder / f"{path.stem}.{len(self.files)}.csv"
                with open(name, "w", newline="") as stream:
                    writer = csv.DictWriter(stream, rows[0].keys())
                    writer.writeheader()
                    writer.writerows(own)
                self.files[source].append(name)

    def predict(self, sources, values):
        table = json.loads(json.dumps(self.table))
        for name, value in values.items():
            entry = table["constants"][name]
            entry["value"] = value
            entry["range"] = [0, 1e9]
        (self.folder / "accuracy/constants.json").write_text(json.dumps(table))
        files = [str(name) for source in sources for name in self.files[source]]
        run = subprocess.run([self.program, "validate", "--json", "--per-row", *files], capture_output=True, text=True, check=True,
                             env={**os.environ, "FORESHARD_DATA": str(self.folder)})
        predictions = [p for p in json.loads(run.stdout)["predictions"] if p["measured"] != "OOM" and not p["experts"]]  # no constant is fitted on models with experts
        return {(p["file"], p["line"]): p for p in predictions}


def log_error(row):
    return math.log(row["predicted"] / float(row["measured"]))


def cell(row):
    return row["source"], row["gpu"], row["framework"]


def cells_of(rows, errors):
    cells = collections.defaultdict(list)
    for key, row in rows.items():
        cells[cell(row)].append(abs(math.expm1(errors[key])))
    return cells


def mean_of_medians(rows, errors):
    cells = cells_of(rows, errors)
    return statistics.fmean(statistics.median(sizes) for sizes in cells.values())


class Surrogate:
    """ln(predicted / measured) of every row as a sum of functions of one constant each."""

    def __init__(self, program, sources):
        self.centre = {name: number(entry["value"]) for name, entry in program.table["constants"].items()}
        self.rows = program.predict(sources, {})
        self.base = {key: log_error(row) for key, row in self.rows.items()}
        self.probes, self.change = {}, {}
        for name, entry in program.table["constants"].items():
            low, high = (number(end) for end in entry["range"])
            value = self.centre[name]
            most = 1.0 if value < 1 <= value + 2 * (high - value) and "us" not in str(entry["value"]) else math.inf
            ends = (max(value - 2 * (value - low), value / 4), min(value + 2 * (high - value), most))
            self.probes[name] = (ends[0], value, ends[1])
            self.change[name] = []
            for end in ends:
                if end == value:
                    self.change[name].append({})
                    continue
                moved = program.predict(sources, {name: end})
                self.change[name].append({key: log_error(moved[key]) - self.base[key] for key in self.rows
                                          if key in moved and abs(log_error(moved[key]) - self.base[key]) > 1e-9})

    def effect(self, name, value):
        low, middle, high = self.probes[name]
        below, above = self.change[name]
        if value < middle:
            share, change = (middle - value) / (middle - low), below
        else:
            share, change = ((value - middle) / (high - middle) if high > middle else 0.0), above
        return share, change

    def fit(self, names, sources_of, left_out):
        """Values of `names` that serve the rows of their sources without `left_out`."""
        values = {name: self.centre[name] for name in names}
        for _ in range(PASSES):
            for name in names:
                keys = {key: row for key, row in self.rows.items() if row["source"] in sources_of[name] and row["source"] != left_out}
                rest = {}
                for key in keys:
                    total = self.base[key]
                    for other in names:
                        if other != name:
                            share, change = self.effect(other, values[other])
                            total += share * change.get(key, 0.0)
                    rest[key] = total
                low, _, high = self.probes[name]
                best = None
                for value in [self.centre[name]] + [low + (high - low) * i / (GRID - 1) for i in range(GRID)]:
                    share, change = self.effect(name, value)
                    score = mean_of_medians(keys, {key: rest[key] + share * change.get(key, 0.0) for key in keys})
                    if best is None or score < best[0] - 1e-4:
                        best = (score, value)
                values[name] = best[1]
        return values


def of_times(row):
    """ln(measured / predicted) of the time, whatever the row states."""
    return log_error(row) if row["quantity"] in RATES else -log_error(row)


def cross_validate(program):
    constants = program.table["constants"]
    sources_of = {name: set(entry["fitted_on"]) for name, entry in constants.items()}
    unknown = set().union(*sources_of.values()) - set(program.files)
    if unknown:
        raise SystemExit(f"accuracy/constants.json names sources without rows of time: {sorted(unknown)}")
    fitted_sources = sorted(set().union(*sources_of.values()))
    surrogate = Surrogate(program, fitted_sources)
    in_sample = program.predict(sorted(program.files), {})
    report, left = [], {}
    for source in sorted(program.files):
        own = {key: row for key, row in in_sample.items() if row["source"] == source}
        if not own:
            continue
        names = [name for name in constants if source in sources_of[name]]
        shared = [name for name in names if sources_of[name] - {source}]
        values = surrogate.fit(shared, sources_of, source) if shared else {}
        values.update({name: number(constants[name]["without"]) for name in names if name not in shared})
        out = program.predict([source], values) if names else own
        left[source] = out
        entry = {"source": source, "rows": len(own),
                 "in_sample": statistics.median(abs(math.expm1(log_error(row))) for row in own.values()),
                 "left_out": statistics.median(abs(math.expm1(log_error(row))) for row in out.values()),
                 "constants": values,
                 "change": statistics.median(of_times(own[key]) - of_times(row) for key, row in out.items() if key in own)}
        entry["ratio"] = max(entry["left_out"], FLOOR) / max(entry["in_sample"], FLOOR)
        report.append(entry)
    everything = {key: row for rows in left.values() for key, row in rows.items()}
    overall = {}
    for name, rows in (("in_sample", in_sample), ("left_out", everything)):
        errors = {key: log_error(row) for key, row in rows.items()}
        overall[name] = {"mean_of_cells": mean_of_medians(rows, errors),
                         "median": statistics.median(abs(math.expm1(error)) for error in errors.values())}
    overall["ratio"] = overall["left_out"]["mean_of_cells"] / overall["in_sample"]["mean_of_cells"]
    return {"guard": GUARD, "sources": report, "overall": overall}


def write_notes(path, result):
    """`without` of accuracy/sources.json: how much longer times are predicted, as ln, with constants that know nothing of the source."""
    notes = json.loads(path.read_text())
    notes["without"] = {entry["source"]: round(entry["change"], 4) for entry in result["sources"] if abs(entry["change"]) >= 0.0005}
    path.write_text(json.dumps(notes, indent=2, ensure_ascii=False) + "\n")


def show(value):
    return f"{value * 1e6:.0f} us" if 0 < value < 0.01 else f"{value:.3g}"


def markdown(result, constants):
    lines = ["| constant | value | range | fitted on |", "|---|---:|---|---|"]
    for name, entry in constants.items():
        low, high = entry["range"]
        lines.append(f"| {name} | {entry['value']} | {low} to {high} | {'; '.join(entry['fitted_on'])} |")
    lines += ["", "| source | rows | in sample % | left out % | guard % | left out / in sample | constants without it |",
              "|---|---:|---:|---:|---:|---:|---|"]
    for entry in result["sources"]:
        changed = ", ".join(f"{name} {show(value)}" for name, value in entry["constants"].items())
        wanted = WANTED.get(entry["source"])
        guard = "–" if wanted is None else f"{100 * GUARD * wanted:.1f}"
        mark = " (over the guard)" if wanted is not None and entry["left_out"] > GUARD * wanted else ""
        lines.append(f"| {entry['source']} | {entry['rows']} | {100 * entry['in_sample']:.1f} | {100 * entry['left_out']:.1f}{mark} | "
                     f"{guard} | {entry['ratio']:.2f} | {changed} |")
    overall = result["overall"]
    lines += ["", f"Mean of the cells' medians: {100 * overall['in_sample']['mean_of_cells']:.1f} % in sample, "
              f"{100 * overall['left_out']['mean_of_cells']:.1f} % left out (guard {100 * GUARD * WANTED_MEAN:.1f} %), ratio {overall['ratio']:.2f}. Median over rows: "
              f"{100 * overall['in_sample']['median']:.1f} % and {100 * overall['left_out']['median']:.1f} %."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", action="store_true", help="print JSON, not the tables of docs/validation.md")
    parser.add_argument("--notes", type=pathlib.Path, metavar="FILE", help="write the changes into accuracy/sources.json")
    parser.add_argument("--load", metavar="FILE", help="print what --json gave earlier")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments.program, folder)
        result = json.loads(pathlib.Path(arguments.load).read_text()) if arguments.load else cross_validate(program)
        if arguments.notes:
            write_notes(arguments.notes, result)
        print(json.dumps(result, indent=1) if arguments.json else markdown(result, program.table["constants"]))


if __name__ == "__main__":
    main()

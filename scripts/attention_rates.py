#!/usr/bin/env python3
"""Writes accuracy/attention_rates/GPU.json from published times of attention, a line per mask and sizes of heads.

    scripts/attention_rates.py FOLDER      benchmark/sdpa_benchmark_training/results of NVIDIA/cudnn-frontend

Runs of 32768 keys are left out: the power limit acts in them. They say what share of the rate is sustained (tests/strategy/cost).
"""
import csv
import json
import pathlib
import sys

FILES = {"gb200": "gb200/*.csv", "gb300": "gb300/*.csv", "h200": "h200_919_only_cudnn/*.csv"}
CONFIGURATIONS = {"llama3.1", "dsv3", "gpt_oss", "qwen35"}
SOURCE = "NVIDIA cuDNN frontend (github.com/NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training/results, commit 3929da2ef), MIT, see NOTICE"
LONGEST = 16384


def rows_of(folder, pattern):
    for path in sorted(folder.rglob(pattern)):
        if not path.is_file():
            continue
        for row in csv.DictReader(open(path)):
            if row["success"] != "True" or row["backend"] != "cudnn" or row["data_type"] != "bfloat16" or row["deterministic_bwd"] == "True":
                continue
            if row["model_name"] not in CONFIGURATIONS or int(row["q_seqlen"]) > LONGEST:
                continue
            passes = ({"fwd": row["fwd_time_ms"], "bwd": row["bwd_time_ms"]} if "fwd_time_ms" in row
                      else {row["profile_pass"]: row["time_ms"]})
            yield row, {of: float(time) for of, time in passes.items()}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    into = pathlib.Path(__file__).resolve().parent.parent / "accuracy" / "attention_rates"
    for gpu, pattern in FILES.items():
        lines = {}
        for row, times in rows_of(pathlib.Path(sys.argv[1]), pattern):
            window = int(float(row["sliding_window_size"] or 0))
            mask = "window" if window else "causal" if row["attn_mask"] == "top_left" else "full"
            sizes = [int(row[of]) for of in ("batch_size", "num_q_heads", "num_kv_heads", "head_dim_qk", "head_dim_vo")]
            lines.setdefault((mask, window, *sizes), {}).setdefault(int(row["q_seqlen"]), {}).update(times)
        texts = []
        for (mask, window, batch, heads, kv, dim, values), points in sorted(lines.items()):
            keys = sorted(points)
            texts.append(f'    {{"mask": "{mask}", ' + (f'"window": {window}, ' if window else "")
                         + f'"batch": {batch}, "heads": {heads}, "kv_heads": {kv}, "dim": {dim}, "value_dim": {values},\n'
                         + f'     "keys": {json.dumps(keys)},\n'
                         + ",\n".join(f'     "{name}": {json.dumps([points[s].get(of, 0) for s in keys])}'
                                      for name, of in (("forward_ms", "fwd"), ("backward_ms", "bwd"))) + "}")
        text = (f'{{\n  "gpu": "{gpu}",\n  "source": "{SOURCE}",\n'
                '  "lines": [  // milliseconds in bf16, as many queries as keys; 0: not measured\n' + ",\n".join(texts) + "\n  ]\n}\n")
        (into / (gpu + ".json")).write_text(text)


main()

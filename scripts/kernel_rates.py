#!/usr/bin/env python3
"""Writes accuracy/kernel_rates/GPU.json from tables of measured kernels, a line per row of a grid.

    scripts/kernel_rates.py FOLDER      gemm.csv of NVIDIA AIConfigurator's database: gpu,dtype,m,n,k,tflops,notes
"""
import csv
import json
import pathlib
import sys

CATALOGUE = {"A100-80GB SXM": "a100-80", "H100-80GB SXM": "h100-80", "H200 SXM": "h200", "B200 SXM": "b200", "GB200": "gb200",
             "GB300": "gb300", "L40S": "l40s", "RTX PRO 6000 Server": "rtx-pro-6000"}
FORMATS = {"bf16": "torch.nn.functional.linear", "fp8": "TensorRT-LLM, one scale per tensor, found while the input is quantised",
           "nvfp4": "TensorRT-LLM, the input quantised with a known scale of the tensor"}
# Of the times with codes, what quantises the input: launches in microseconds, and bytes per element at the bandwidth of a streaming kernel. With
# them the rates of the products by themselves depend least on n, of which quantising knows nothing.
QUANTISATION = {"h100-80": (8, 6.25), "h200": (8, 7.5), "b200": (12, 7.5), "gb200": (12, 7.5), "gb300": (12, 7.5), "l40s": (0, 3.75),
                "rtx-pro-6000": (8, 3.75)}
QUANTISATION_4 = {"b200": (14, 3.75), "gb200": (14, 5), "gb300": (14, 5), "rtx-pro-6000": (4, 2.5625)}
# Likewise, bytes per element of a further pass over the result, whose time does not depend on k: with them the rates depend least on k.
RESULT_4 = {"gb300": 2}
SOURCE = "NVIDIA AIConfigurator (github.com/ai-dynamo/aiconfigurator, commit 095f58a51), Apache-2.0, see NOTICE; reduced to rates"


def products(rows):
    """TFLOP/s of the products of one GPU and format: a line per (m, n), a column per k, 0 where nothing was measured."""
    axis = {of: sorted({int(row[of]) for row in rows}) for of in "mnk"}
    rate = {(int(row["m"]), int(row["n"]), int(row["k"])): float(row["tflops"]) for row in rows}
    lines = [[round(rate.get((m, n, k), 0), 1) for k in axis["k"]] for m in axis["m"] for n in axis["n"]]
    return axis, lines


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = list(csv.DictReader(open(pathlib.Path(sys.argv[1]) / "gemm.csv")))
    into = pathlib.Path(__file__).resolve().parent.parent / "accuracy" / "kernel_rates"
    for gpu, name in CATALOGUE.items():
        parts = []
        for dtype, kernel in FORMATS.items():
            of = [row for row in rows if row["gpu"] == gpu and row["dtype"] == dtype]
            if not of:
                continue
            axis, lines = products(of)
            table = ",\n".join("      " + json.dumps(line) for line in lines)
            launches, moved = {"fp8": QUANTISATION, "nvfp4": QUANTISATION_4}.get(dtype, {}).get(name, (0, 0))
            quantised = "" if dtype == "bf16" else f'      "quantisation": {{"launches": "{launches} us", "bytes": {moved}}},\n'
            if dtype == "nvfp4" and name in RESULT_4:
                quantised += f'      "result_bytes": {RESULT_4[name]},\n'
            parts.append(f'    "{dtype}": {{\n      "kernel": {json.dumps(kernel)},\n' + quantised
                         + "".join(f'      "{of}": {json.dumps(values)},\n' for of, values in axis.items())
                         + f'      "teraflops": [  // a line per m and n, a column per k; 0: not measured\n{table}\n      ]\n    }}')
        text = f'{{\n  "gpu": "{name}",\n  "source": "{SOURCE}",\n  "products": {{\n' + ",\n".join(parts) + "\n  }\n}\n"
        (into / (name + ".json")).write_text(text)


main()

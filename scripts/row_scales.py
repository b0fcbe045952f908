#!/usr/bin/env python3
"""What 8-bit products with scales of rows and columns move beside them, from published speedups.

    scripts/row_scales.py [data/kernels/row_scales.csv]

Each row is the time of a LayerNorm (m x k), a linear layer (m x k x n) and a sigmoid (m x n), forward and backward, in bf16 over that in 8 bits.
Torch compiles all of it, and the times are those of kernels, so that

    bf16    = 6 m k n / B + (10 m k + 10 m n) / E
    8 bits  = 6 m k n / C + (10 m k + 10 m n) / E + (input m k + gradient m n + weight k n) / S

with the rates B and C of products on an H100 of 500 W (pytorch/FBGEMM pull request 2546, means of three shapes), the speed S of a stream on the
same card and E = 0.83 S (`elementwise.fused`). Solved for bytes per element by least squares of relative errors, over the rows that take a millisecond
or more in bf16: below, the products are too short for B and C. Standard library only.
"""
import csv
import pathlib
import statistics
import sys

from least_squares import least_squares

ROOT = pathlib.Path(__file__).resolve().parent.parent
B, C, S = 569e12, 1117e12, 0.89 * 2.4e12
E = 0.83 * S
LEAST = 1e-3


def equations(path):
    """[(seconds for a byte of each, seconds of the casts, seconds in 8 bits)]"""
    for row in csv.DictReader(open(path)):
        m, k, n, speedup = int(row["m"]), int(row["k"]), int(row["n"]), float(row["speedup"])
        streams, products = 10 * (m * k + m * n) / E, 6.0 * m * k * n
        wide = products / B + streams
        if wide >= LEAST:
            narrow = wide / speedup
            yield {"input": m * k / S, "gradient": m * n / S, "weight": k * n / S}, narrow - streams - products / C, narrow


def main():
    rows = list(equations(sys.argv[1] if len(sys.argv) > 1 else ROOT / "data/kernels/row_scales.csv"))
    bytes_of = least_squares(*zip(*rows))
    errors = [abs(sum(bytes_of[name] * x for name, x in seconds.items()) - casts) / whole for seconds, casts, whole in rows]
    print(f"{len(rows)} rows: " + ", ".join(f"{name} {bytes_of[name]:.1f}" for name in rows[0][0]) + " bytes an element")
    print(f"error: median {statistics.median(errors):.1%}, mean {statistics.mean(errors):.1%}, largest {max(errors):.1%}")


main()

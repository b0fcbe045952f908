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

ROOT = pathlib.Path(__file__).resolve().parent.parent
B, C, S = 569e12, 1117e12, 0.89 * 2.4e12
E = 0.83 * S
LEAST = 1e-3


def equations(path):
    """[(bytes' coefficients, seconds of the casts, seconds in 8 bits)]"""
    for row in csv.DictReader(open(path)):
        m, k, n, speedup = int(row["m"]), int(row["k"]), int(row["n"]), float(row["speedup"])
        streams, products = 10 * (m * k + m * n) / E, 6.0 * m * k * n
        wide = products / B + streams
        if wide >= LEAST:
            narrow = wide / speedup
            yield (m * k / S, m * n / S, k * n / S), narrow - streams - products / C, narrow


def solved(matrix):
    """Gauss-Jordan of three equations in three unknowns, with the right side as a fourth column."""
    for column in range(3):
        best = max(range(column, 3), key=lambda r: abs(matrix[r][column]))
        matrix[column], matrix[best] = matrix[best], matrix[column]
        for other in range(3):
            if other != column:
                factor = matrix[other][column] / matrix[column][column]
                matrix[other] = [a - factor * b for a, b in zip(matrix[other], matrix[column])]
    return [matrix[i][3] / matrix[i][i] for i in range(3)]


def main():
    rows = list(equations(sys.argv[1] if len(sys.argv) > 1 else ROOT / "data/kernels/row_scales.csv"))
    normal = [[sum(c[i] * (c + (casts,))[j] / whole**2 for c, casts, whole in rows) for j in range(4)] for i in range(3)]
    values = solved(normal)
    errors = [abs(sum(v * x for v, x in zip(values, c)) - casts) / whole for c, casts, whole in rows]
    print(f"{len(rows)} rows: input {values[0]:.1f}, gradient {values[1]:.1f}, weight {values[2]:.1f} bytes an element")
    print(f"error: median {statistics.median(errors):.1%}, mean {statistics.mean(errors):.1%}, largest {max(errors):.1%}")


main()

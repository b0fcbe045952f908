#!/usr/bin/env python3
"""What a step on one GPU should take: a model, no measurement. `expected_mfu.py PLAN` reads the plan (of one rank) and prints the table of docs/cuda.md.
Each assumption is a line below; operations and bytes are those of the plan's own instructions."""
import json
import sys

PEAK = 989.4e12  # bf16, dense, H100 and H200 SXM
GPUS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes per second of memory
PRODUCTS = (600e12, 650e12, 700e12)  # FLOP/s of cuBLASLt's bf16 products of these sizes, over a whole step
ATTENTION = {"forward": 500e12, "input_grad": 400e12}  # cuDNN 9.19, causal, heads of 128: 591 and 474 at 4096 tokens (NVIDIA), less at 2048
MEMORY = 0.8  # share of the bandwidth that kernels reach which wait for memory, as all of the table "What the disassembly shows" do
GAP = 1.5e-6  # seconds between two kernels of a stream
LAUNCHES = {("norm", "backward"): 2, ("attention", "input_grad"): 3, ("add", "weight_grad"): 2, ("cross_entropy", "forward"): 3}  # else 1


def seconds_of(instruction, epilogues, products, bandwidth):
    """(kind, seconds, FLOPs of the model) of one instruction."""
    what = instruction["compute"]
    op, phase = what["op"], what.get("phase", "forward")
    launches, moved = LAUNCHES.get((op, phase), 1), what["traffic"]
    through_memory = MEMORY * bandwidth
    if op == "matmul":
        time, (_, _, m, n, _) = what["flops"] / products, what["shapes"][0]
        if phase == "weight_grad" and len(instruction["writes"]) > 1 and not epilogues:  # the bias gradient: a sum over dy
            time, launches = time + 2 * m * n / through_memory, launches + 2
        return "products", time + launches * GAP, what["flops"]
    if op == "attention":
        forward = what["flops"] / (1 if phase == "forward" else 2) / 2  # the plan counts the whole map; a causal one is half of it
        done = forward if phase == "forward" else 2.5 * forward  # the backward makes one product anew
        return "attention", done / ATTENTION[phase] + launches * GAP, forward if phase == "forward" else 2 * forward
    if op == "activation" and epilogues:  # inside the products: they write, or read, one array more
        return "activations", moved / (2 if phase == "forward" else 3) / through_memory, 0
    kind = {"activation": "activations", "adam": "update", "cross_entropy": "loss"}.get(op, "norms, sums, embedding")
    return kind, moved / through_memory + launches * GAP, 0


def step(plan, epilogues, products, bandwidth):
    found, flops = {}, 0
    for action in plan["roles"][0]["actions"]:
        for instruction in plan["segments"][action[0]]["instructions"]:
            if "compute" not in instruction:
                continue
            kind, time, done = seconds_of(instruction, epilogues, products, bandwidth)
            found[kind] = found.get(kind, 0) + time
            flops += done
    return found, flops


def main():
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    kinds = ["products", "attention", "activations", "norms, sums, embedding", "loss", "update"]
    print("| | epilogues | " + " | ".join(kinds) + " | step, ms | of the peak | range |")
    print("|---|---|" + "---|" * (len(kinds) + 3))
    for gpu, bandwidth in GPUS.items():
        for epilogues in (False, True):
            shares, row = [], []
            for products in PRODUCTS:
                found, flops = step(plan, epilogues, products, bandwidth)
                shares.append(flops / sum(found.values()) / PEAK)
                if products == PRODUCTS[1]:
                    row = [f"{found[kind] * 1e3:.1f}" for kind in kinds] + [f"{sum(found.values()) * 1e3:.0f}"]
            print(f"| {gpu} | {'yes' if epilogues else 'no'} | " + " | ".join(row) + f" | {100 * shares[1]:.1f} % | {100 * shares[0]:.0f} to {100 * shares[2]:.0f} % |")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Host kernels beside PyTorch on the same processor: one GPT layer forward and backward, and the AdamW step.

    python3 bench/torch_ratio.py [--foreshard build/release/foreshard] [--bench build/release/bench/host_kernels_bench]

Both sides work in fp32 on one thread, with OpenBLAS kernels of the same kind when PyTorch is Debian's (its wheels have MKL), and
both are measured in CPU time of the process, so that a busy machine disturbs little. Rounds alternate between the two; each
side's best round counts. Needs numpy and torch, and foreshard's benchmarks for the second part.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX" if " avx512f " in open("/proc/cpuinfo").read() else "Haswell")
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

BATCH, SEQ, HIDDEN, HEADS = 2, 512, 1024, 16
ROUNDS, STEPS, PARAMETERS = 3, 4, 16 << 20


def torch_side():
    """Prints {"layer": seconds, "adamw": seconds, "version": text}."""
    import time

    import torch
    import torch.nn.functional as F

    torch.set_num_threads(1)
    torch.manual_seed(0)

    def parameter(*shape):
        return torch.nn.Parameter(0.02 * torch.randn(*shape))

    n1w, n1b, n2w, n2b = (parameter(HIDDEN) for _ in range(4))
    qkv_w, qkv_b, out_w, out_b = parameter(3 * HIDDEN, HIDDEN), parameter(3 * HIDDEN), parameter(HIDDEN, HIDDEN), parameter(HIDDEN)
    up_w, up_b = parameter(4 * HIDDEN, HIDDEN), parameter(4 * HIDDEN)
    down_w, down_b = parameter(HIDDEN, 4 * HIDDEN), parameter(HIDDEN)
    mask = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
    weights = [n1w, n1b, n2w, n2b, qkv_w, qkv_b, out_w, out_b, up_w, up_b, down_w, down_b]

    def layer(x):
        y = F.linear(F.layer_norm(x, (HIDDEN,), n1w, n1b), qkv_w, qkv_b)
        q, k, v = (t.reshape(BATCH, SEQ, HEADS, -1).transpose(1, 2) for t in y.chunk(3, dim=-1))
        scores = (q @ k.transpose(-1, -2)) * (HIDDEN // HEADS) ** -0.5
        attended = scores.masked_fill(mask, float("-inf")).softmax(-1) @ v
        x = x + F.linear(attended.transpose(1, 2).reshape(BATCH, SEQ, HIDDEN), out_w, out_b)
        y = F.gelu(F.linear(F.layer_norm(x, (HIDDEN,), n2w, n2b), up_w, up_b), approximate="tanh")
        return x + F.linear(y, down_w, down_b)

    def best(work):
        times = []
        for _ in range(STEPS):
            before = time.process_time()
            work()
            times.append(time.process_time() - before)
        return min(times)

    x = torch.randn(BATCH, SEQ, HIDDEN, requires_grad=True)
    gradient = torch.randn(BATCH, SEQ, HIDDEN)

    def step():
        for tensor in [x, *weights]:
            tensor.grad = None
        layer(x).backward(gradient)

    flat = torch.nn.Parameter(torch.randn(PARAMETERS))
    flat.grad = torch.randn(PARAMETERS)
    adamw = []
    for foreach in (False, True):  # PyTorch's two ways of going through the tensors
        adam = torch.optim.AdamW([flat], lr=1e-3, weight_decay=0.1, foreach=foreach)
        adam.step()
        adamw.append(best(adam.step))
    print(json.dumps({"layer": best(step), "adamw": min(adamw), "version": torch.__version__}))


def foreshard_layer(program, folder):
    """Seconds of the layer's instructions, forward and backward: own CPU time, median over the steps of a run."""
    model = {"model_type": "gpt2", "n_layer": 1, "n_embd": HIDDEN, "n_head": HEADS, "vocab_size": 512, "n_positions": SEQ}
    paths = [os.path.join(folder, name) for name in ("model.json", "layer.plan.json", "trace.json")]
    with open(paths[0], "w") as file:
        json.dump(model, file)
    shape = ["--dp", "1", "--micro-batch", str(BATCH), "--global-batch", str(BATCH), "--attention", "unfused"]
    lower = [program, "lower", "--model", paths[0], "--cluster", "dgx-a100", "--precision", "fp32", *shape, "--save-plan", paths[1]]
    subprocess.run(lower, check=True, stdout=subprocess.DEVNULL)
    run = [program, "run", paths[1], "--steps", str(STEPS), "--time", "emulated", "--trace", paths[2]]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    with open(paths[2]) as file:
        events = json.load(file)["traceEvents"]
    return sum(e["dur"] for e in events if e.get("ph") == "X" and e["args"].get("layer") == "layers.0") * 1e-6


def foreshard_adamw(bench):
    """(seconds of the step, share of the STREAM triad's bandwidth, both with every line that they move)."""
    command = [bench, "--benchmark_filter=^(triad|adamw)$", "--benchmark_format=json", "--benchmark_repetitions=5"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    times = {}
    for entry in report["benchmarks"]:
        if entry.get("run_type") == "iteration":
            times.setdefault(entry["run_name"], []).append(entry["cpu_time"] * 1e-3)
    adamw, triad = min(times["adamw"]), min(times["triad"])
    return adamw, (28 / adamw) / (16 / triad)  # bytes per element; the triad fetches the line that it writes


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--foreshard", default="build/release/foreshard")
    arguments.add_argument("--bench", default="build/release/bench/host_kernels_bench")
    arguments.add_argument("--torch-side", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.torch_side:
        return torch_side()
    theirs, ours, adamw = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            command = [sys.executable, os.path.abspath(__file__), "--torch-side"]
            theirs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            ours.append(foreshard_layer(options.foreshard, folder))
            if os.path.exists(options.bench):
                adamw.append(foreshard_adamw(options.bench))
    layer = min(t["layer"] for t in theirs)
    print(f"PyTorch {theirs[0]['version']}, fp32, one thread, CPU time, best of {ROUNDS} rounds")
    print(f"GPT layer, forward + backward   PyTorch {layer * 1e3:8.1f} ms   foreshard {min(ours) * 1e3:8.1f} ms   "
          f"ratio {layer / min(ours):.2f}")
    if adamw:
        step, share = min(adamw)[0], max(a[1] for a in adamw)
        theirs_step = min(t["adamw"] for t in theirs)
        print(f"AdamW, {PARAMETERS >> 20} M parameters         PyTorch {theirs_step * 1e3:8.1f} ms   foreshard {step * 1e3:8.1f} ms   "
              f"ratio {theirs_step / step:.2f}   {share:.0%} of the STREAM triad")


if __name__ == "__main__":
    main()

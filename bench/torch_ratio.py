#!/usr/bin/env python3
"""Host kernels beside PyTorch and STREAM on the same processor.

    python3 bench/torch_ratio.py --part layer      # one GPT layer, forward and backward
    python3 bench/torch_ratio.py --part adamw      # the AdamW step
    python3 bench/torch_ratio.py --part stream     # AdamW's bandwidth beside STREAM's; needs no PyTorch

Both sides work in fp32 on one thread, with OpenBLAS kernels of the same kind when PyTorch is Debian's (its wheels have MKL), and
both are measured in CPU time of the process, so that a busy machine disturbs little. Rounds alternate between the two; each
side's best round counts. Every part takes less than a minute on an idle machine. --python names an interpreter that has torch.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

BATCH, SEQ, HIDDEN, HEADS = 2, 512, 1024, 16
STEPS, PARAMETERS = 3, 64 << 20
TARGETS = {"layer": 1.0, "adamw": 1.5, "stream": 0.8}


def one_thread_environment():
    environment = dict(os.environ)
    with open("/proc/cpuinfo") as file:
        environment.setdefault("OPENBLAS_CORETYPE", "SkylakeX" if " avx512f " in file.read() else "Haswell")
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[variable] = "1"
    return environment


def blas_in_use():
    """The file of the BLAS library that this process has loaded."""
    with open("/proc/self/maps") as file:
        names = {line.split()[-1] for line in file if "blas" in line.lower() or "mkl" in line.lower()}
    return ", ".join(sorted(os.path.basename(os.path.realpath(name)) for name in names)) or "unknown"


def best(work):
    """Least CPU seconds of a few calls, the first aside."""
    import time

    work()
    times = []
    for _ in range(STEPS):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return min(times)


def torch_layer(torch):
    import torch.nn.functional as F

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

    x = torch.randn(BATCH, SEQ, HIDDEN, requires_grad=True)
    gradient = torch.randn(BATCH, SEQ, HIDDEN)

    def step():
        for tensor in [x, *weights]:
            tensor.grad = None
        layer(x).backward(gradient)

    return best(step)


def torch_adamw(torch):
    flat = torch.nn.Parameter(torch.full((PARAMETERS,), 0.5))
    flat.grad = torch.full((PARAMETERS,), 0.25)
    times = []
    for foreach in (False, True):  # PyTorch's two ways of going through the tensors
        adam = torch.optim.AdamW([flat], lr=1e-3, weight_decay=0.1, foreach=foreach)
        times.append(best(adam.step))
    return min(times)


def torch_side(part):
    """Prints {"seconds", "version", "blas"}."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    seconds = {"layer": torch_layer, "adamw": torch_adamw}[part](torch)
    print(json.dumps({"seconds": seconds, "version": torch.__version__, "blas": blas_in_use()}))


def output(command, environment):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        sys.exit("%s: exit code %d\n%s" % (" ".join(command), done.returncode, done.stderr[-2000:]))
    return done.stdout


def ask_torch(options, part):
    return json.loads(output([options.python, os.path.abspath(__file__), "--torch-side", part], one_thread_environment()))


def foreshard_layer(program, folder):
    """Seconds of the layer's instructions, forward and backward: own CPU time, median over the steps of a run."""
    model = {"model_type": "gpt2", "n_layer": 1, "n_embd": HIDDEN, "n_head": HEADS, "vocab_size": 512, "n_positions": SEQ}
    paths = [os.path.join(folder, name) for name in ("model.json", "layer.plan.json", "trace.json")]
    with open(paths[0], "w") as file:
        json.dump(model, file)
    shape = ["--dp", "1", "--micro-batch", str(BATCH), "--global-batch", str(BATCH), "--attention", "unfused"]
    lower = ["lower", "--model", paths[0], "--cluster", "dgx-a100", "--precision", "fp32", *shape, "--save-plan", paths[1]]
    output([program, *lower], None)
    output([program, "run", paths[1], "--steps", str(STEPS + 1), "--time", "emulated", "--trace", paths[2]], None)
    with open(paths[2]) as file:
        events = json.load(file)["traceEvents"]
    return sum(e["dur"] for e in events if e.get("ph") == "X" and e["args"].get("layer") == "layers.0") * 1e-6


def benchmarks(options, pattern):
    """[(name, CPU seconds, bytes moved and bytes fetched per second)], the best repetition of each."""
    command = [options.bench, "--benchmark_filter=" + pattern, "--benchmark_format=json", "--benchmark_repetitions=2",
               "--benchmark_min_time=0.1"]
    found = {}
    for entry in json.loads(output(command, None))["benchmarks"]:
        if entry.get("run_type") == "iteration":
            one = (entry["cpu_time"] * 1e-3, entry["bytes_per_second"], entry["fetched"])
            found[entry["run_name"]] = min(found.get(entry["run_name"], one), one)
    return [(name, *one) for name, one in found.items()]


def layer(options):
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            theirs.append(ask_torch(options, "layer"))
            ours.append(foreshard_layer(options.foreshard, folder))
    seconds = min(t["seconds"] for t in theirs)
    print(f"PyTorch {theirs[0]['version']} ({theirs[0]['blas']}), fp32, one thread, CPU time, best of {options.rounds} rounds")
    print(f"GPT layer, forward + backward: PyTorch {seconds * 1e3:.1f} ms, foreshard {min(ours) * 1e3:.1f} ms, "
          f"ratio {seconds / min(ours):.2f}")
    return seconds / min(ours)


def adamw(options):
    theirs = [ask_torch(options, "adamw") for _ in range(options.rounds)]
    seconds = min(t["seconds"] for t in theirs)
    ours = min(b[1] for b in benchmarks(options, "^adamw/%d$" % PARAMETERS))
    print(f"PyTorch {theirs[0]['version']}, fp32, one thread, CPU time, best of {options.rounds} rounds")
    print(f"AdamW, {PARAMETERS >> 20} Mi parameters: PyTorch {seconds * 1e3:.1f} ms, foreshard {ours * 1e3:.1f} ms, ratio {seconds / ours:.2f}")
    return seconds / ours


def stream(options):
    elements = 1 << 28
    rows = benchmarks(options, "/%d$" % elements)
    print(f"one thread, arrays of {elements * 4 >> 20} MiB, CPU time; bytes that move, and of those the fetched ones")
    for name, seconds, moved, fetched in rows:
        print(f"  {name.split('/')[0]:26s} {seconds * 1e3:8.1f} ms  {moved * 1e-9:6.2f} GB/s  {fetched * 1e-9:6.2f} GB/s")
    shares = []
    for column, what in ((2, "moves"), (3, "fetches")):
        rates = {row[0].split("/")[0]: row[column] for row in rows}
        name, rate = max(((n, r) for n, r in rates.items() if n.startswith("stream_")), key=lambda row: row[1])
        shares.append(rates["adamw"] / rate)
        print(f"AdamW {what} {shares[-1]:.0%} of the bytes that the best STREAM kernel does ({name})")
    return min(shares)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["layer", "adamw", "stream", "all"], default="all")
    parser.add_argument("--foreshard", default="build/release/foreshard")
    parser.add_argument("--bench", default="build/release/bench/host_memory_bench")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--torch-side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_side:
        torch_side(options.torch_side)
        return 0
    parts = list(TARGETS) if options.part == "all" else [options.part]
    reached = {part: {"layer": layer, "adamw": adamw, "stream": stream}[part](options) for part in parts}
    missed = [part for part in parts if reached[part] < TARGETS[part]]
    for part in missed:
        print(f"{part}: below {TARGETS[part]}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

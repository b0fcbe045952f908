#!/usr/bin/env python3
"""PyTorch's times for the instructions that `foreshard calibrate` measured: `torch_kernels.py ROWS.json`, rows as parts.py writes them. Eager and compiled, the
faster of both; the mean of one call with cold caches and one with warm ones, as in the profile. The last line is JSON: seconds by place in the list."""
import json
import statistics
import sys

import torch
from torch.nn import functional as F

BF16 = torch.bfloat16


def random(*shape, grad=False, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=grad)


def gradients(function, inputs):
    """The backward alone, of a forward that was done before."""
    out = function(*inputs)
    gradient = torch.randn_like(out)
    wanted = [x for x in inputs if x.requires_grad]
    return lambda: torch.autograd.grad(out, wanted, gradient, retain_graph=True)


def matmul(phase, variant, dims):
    _, m, n, k = dims
    x, w, y = random(m, k), random(n, k), random(m, n)
    return {"forward": lambda: F.linear(x, w), "input_grad": lambda: y @ w, "weight_grad": lambda: y.t() @ x}.get(phase)


def attention(phase, variant, dims):
    if " p" in variant:
        return None
    b, s, heads, d, _, keys, kv_heads, _ = dims
    inputs = [random(b, heads, s, d, grad=True), *(random(b, kv_heads, keys, d, grad=True) for _ in range(2))]
    call = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal="causal" in variant, enable_gqa=kv_heads != heads)
    return (lambda: call(*inputs)) if phase == "forward" else gradients(call, inputs)


def activation(phase, variant, dims):
    rows, width = dims
    if "swiglu" in variant:
        x = random(rows, 2 * width, grad=True)
        call = torch.compile(lambda t: F.silu(t[:, :width]) * t[:, width:])
    elif "gelu" in variant:
        x, call = random(rows, width, grad=True), lambda t: F.gelu(t, approximate="tanh")
    else:
        return None
    return (lambda: call(x)) if phase == "forward" else gradients(call, [x])


def norm(phase, variant, dims):
    rows, width = dims
    x, w, b = random(rows, width, grad=True), random(width, grad=True), random(width, grad=True)
    if "rmsnorm" in variant:
        call, inputs = (lambda x, w: F.rms_norm(x, (width,), w)), [x, w]
    else:
        call, inputs = (lambda x, w, b: F.layer_norm(x, (width,), w, b)), [x, w, b]
    compiled = torch.compile(call)
    faster = (lambda: call(*inputs), lambda: compiled(*inputs)) if phase == "forward" else (gradients(call, inputs), gradients(compiled, inputs))
    return min(faster, key=seconds)


def cross_entropy(phase, variant, dims):
    rows, vocabulary = dims
    x, target = random(rows, vocabulary, grad=True), torch.randint(vocabulary, (rows,), device="cuda")
    compiled = torch.compile(lambda t: F.cross_entropy(t.float(), target))
    return (lambda: compiled(x)) if phase == "forward" else gradients(compiled, [x])


def token_embedding(phase, variant, dims):
    rows, width, vocabulary = dims
    table, tokens = random(vocabulary, width, grad=True), torch.randint(vocabulary, (rows,), device="cuda")
    call = lambda w: F.embedding(tokens, w)
    return (lambda: call(table)) if phase == "forward" else gradients(call, [table])


def add(phase, variant, dims):
    a, b = random(*dims), random(*dims)
    return (lambda: a + b) if phase == "forward" else None


def adam(phase, variant, dims):
    weights = random(dims[0], dtype=torch.float32)
    weights.grad = torch.randn_like(weights)
    return torch.optim.AdamW([weights], lr=1e-3, weight_decay=0, fused=True).step


KINDS = {"matmul": matmul, "attention": attention, "activation": activation, "norm": norm, "cross_entropy": cross_entropy,
         "token_embedding": token_embedding, "add": add, "adam": adam}
_other = []


def seconds(call):
    if not _other:
        _other.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def row(count, before):
        before()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3 / count

    def cool():
        _other[0].fill_(1)

    for _ in range(2):
        call()
    cold = statistics.median(row(1, cool) for _ in range(7))
    warm = statistics.median(row(3, lambda: (cool(), call())) for _ in range(7))
    return (cold + warm) / 2


def main():
    with open(sys.argv[1]) as file:
        rows = json.load(file)
    found = {}
    for place, row in enumerate(rows):
        kind = KINDS.get(row["op"])
        try:
            call = kind(row["phase"], row["variant"], row["dims"]) if kind else None
            if call:
                found[place] = seconds(call)
        except RuntimeError as problem:  # out of memory, say: the others go on
            print(f"{row['op']} {row['phase']}: {problem}", file=sys.stderr)
        torch.cuda.empty_cache()
    print(json.dumps({"version": torch.__version__, "seconds": found}))


if __name__ == "__main__":
    main()

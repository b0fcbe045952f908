#!/usr/bin/env python3
"""What the host pays to issue a transformer layer: forward, recomputation and backward of eager PyTorch, without arithmetic.

    python3 bench/host_issue.py [--layers 24] [--rounds 30]

A GPT layer is written as Megatron's of 2021 is: Python modules, autograd functions in Python for the norms, the softmax, the bias
with its activation and both ends of tensor parallelism, jitted bias + dropout + residual, checkpointed as a whole with its random
states kept. Tensors are tiny, so that what is measured is the interpreter, the dispatcher and the autograd engine: the host's
time per layer, in CPU time of the process, the best of the rounds. Collectives cost nothing here. What counts is how the parts
compare, which the cost model takes to be alike per operator. Needs PyTorch on any processor.
"""
import argparse
import contextlib
import time

import torch
from torch import nn
from torch.nn import functional as F

HIDDEN, HEADS, SEQ, BATCH = 16, 2, 4, 1


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        y, mean, rstd = torch.native_layer_norm(x.contiguous(), [HIDDEN], weight.contiguous(), bias.contiguous(), 1e-5)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias, mean, rstd = ctx.saved_tensors
        return torch.ops.aten.native_layer_norm_backward(grad.contiguous(), x, [HIDDEN], mean, rstd, weight, bias,
                                                         [True, True, True])


class CausalSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = torch._softmax(x, -1, False)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return torch._softmax_backward_data(grad, y, -1, y.dtype), None


class BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, bias):
        ctx.save_for_backward(y, bias)
        return torch.neg(y)  # fused kernels are one launch: a plain operator of the same size stands for each

    @staticmethod
    def backward(ctx, grad):
        y, _ = ctx.saved_tensors
        d = torch.mul(grad, y)
        return d, d.sum((0, 1))


class Enter(torch.autograd.Function):  # of a column-parallel product: nothing forward, a sum over the ranks backward
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return collective(grad)


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return collective(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


def collective(x):
    return x


@torch.jit.script
def bias_dropout_add(x, bias, residual, p: float):
    return residual + F.dropout(x + bias, p, True)


class Column(nn.Module):
    def __init__(self, n, m, skip):
        super().__init__()
        self.weight, self.bias, self.skip = nn.Parameter(torch.randn(m, n) * 0.1), nn.Parameter(torch.zeros(m)), skip

    def forward(self, x):
        y = F.linear(Enter.apply(x), self.weight, None if self.skip else self.bias)
        return y, self.bias if self.skip else None


class Row(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(m, n) * 0.1), nn.Parameter(torch.zeros(m))

    def forward(self, x):
        return Leave.apply(F.linear(x, self.weight)), self.bias


class LayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(HIDDEN)), nn.Parameter(torch.zeros(HIDDEN))

    def forward(self, x):
        return Norm.apply(x, self.weight, self.bias)


@contextlib.contextmanager
def other_random_state(states):  # the generator of a tensor-parallel rank for the length of a dropout
    before = torch.get_rng_state()
    torch.set_rng_state(states["model"])
    try:
        yield
    finally:
        states["model"] = torch.get_rng_state()
        torch.set_rng_state(before)


class Layer(nn.Module):
    def __init__(self, states):
        super().__init__()
        self.first, self.second, self.states = LayerNorm(), LayerNorm(), states
        self.qkv, self.out = Column(HIDDEN, 3 * HIDDEN, False), Row(HIDDEN, HIDDEN)
        self.up, self.down = Column(HIDDEN, 4 * HIDDEN, True), Row(4 * HIDDEN, HIDDEN)
        self.dropout = nn.Dropout(0.1)

    def attention(self, x):
        s, b, _ = x.shape
        mixed, _ = self.qkv(x)
        mixed = mixed.view(s, b, HEADS, 3 * HIDDEN // HEADS)
        q, k, v = torch.split(mixed, HIDDEN // HEADS, dim=3)
        q, k = q.reshape(s, b * HEADS, -1), k.reshape(s, b * HEADS, -1)
        scores = torch.empty(b * HEADS, s, s)
        scores = torch.baddbmm(scores, q.transpose(0, 1), k.transpose(0, 1).transpose(1, 2), beta=0.0, alpha=0.3)
        probs = CausalSoftmax.apply(scores.view(b, HEADS, s, s), 1.0)
        with other_random_state(self.states):
            probs = self.dropout(probs)
        v = v.reshape(s, b * HEADS, -1)
        y = torch.bmm(probs.view(b * HEADS, s, s), v.transpose(0, 1))
        y = y.view(b, HEADS, s, -1).permute(2, 0, 1, 3).contiguous().view(s, b, HIDDEN)
        return self.out(y)

    def forward(self, x):
        y, bias = self.attention(self.first(x))
        x = bias_dropout_add(y, bias.expand_as(x), x, 0.1)
        y, bias = self.up(self.second(x))
        y, bias = self.down(BiasGelu.apply(y, bias))
        return bias_dropout_add(y, bias.expand_as(x), x, 0.1)


class Spans:
    def __init__(self):
        self.redone = 0.0


SPANS = Spans()


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layer, states, x):
        ctx.layer, ctx.states = layer, states
        ctx.random = torch.get_rng_state(), dict(states)
        ctx.save_for_backward(x)
        with torch.no_grad():
            return layer(x)

    @staticmethod
    def backward(ctx, grad):
        begin = time.process_time()
        (x,) = ctx.saved_tensors
        now = torch.get_rng_state(), dict(ctx.states)
        torch.set_rng_state(ctx.random[0])
        ctx.states.update(ctx.random[1])
        x = x.detach()
        x.requires_grad_(True)
        with torch.enable_grad():
            y = ctx.layer(x)
        torch.set_rng_state(now[0])
        ctx.states.update(now[1])
        SPANS.redone += time.process_time() - begin
        torch.autograd.backward(y, grad)
        return None, None, x.grad


def run(layers, states, recompute):
    x = torch.randn(SEQ, BATCH, HIDDEN, requires_grad=True)
    begin = time.process_time()
    y = x
    for layer in layers:
        y = Checkpoint.apply(layer, states, y) if recompute else layer(y)
    middle = time.process_time()
    SPANS.redone = 0.0
    y.backward(torch.ones_like(y))
    end = time.process_time()
    return middle - begin, SPANS.redone, end - middle - SPANS.redone


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    states = {"model": torch.get_rng_state()}
    layers = [Layer(states) for _ in range(arguments.layers)]
    for recompute in (False, True):
        times = [run(layers, states, recompute) for _ in range(arguments.rounds)]
        parts = [1e6 * min(column) / arguments.layers for column in zip(*times)]
        print(f"{'recomputed' if recompute else 'kept'}: us per layer: forward {parts[0]:.0f}, again {parts[1]:.0f}, "
              f"backward {parts[2]:.0f}")


main()

#!/usr/bin/env python3
"""Writes torch.txt: what PyTorch says, in double precision, about tiny transformers and a tiny network for pictures.

Nothing of foreshard is used here but its conventions: weights, tokens and labels are made again from the counter-based
generator (Philox4x32-10, exec/base/philox.h), the networks are written with PyTorch's own functions, gradients come from autograd
and the update is torch.optim.AdamW. After two steps every tensor of the model leaves one line for its gradient and one for
its value: the norm and the products with a few random vectors (tests/exec/oracle_test.cpp makes the same numbers).

    python3 tests/exec/oracle/torch_oracle.py > tests/exec/oracle/torch.txt        (needs numpy and torch; 5 seconds)
    python3 tests/exec/oracle/torch_oracle.py qwen3 gemma2                                 these models only
"""
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

SEED, BATCH, STEPS, VECTORS = 7, 8, 2, 3
VOCAB, SEQ, HIDDEN, LAYERS = 256, 32, 64, 2
MASK = (1 << 64) - 1


def philox(stream, index, seed=SEED):
    """Ten rounds of Philox4x32 (Salmon et al. 2011) for an array of indices: four arrays of 32-bit words."""
    low = np.uint64(0xFFFFFFFF)
    index = np.asarray(index, dtype=np.uint64)
    c = [index & low, index >> np.uint64(32), np.full_like(index, stream & 0xFFFFFFFF), np.full_like(index, stream >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & low, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def scramble(h):
    h = ((h ^ (h >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    h = ((h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    return h ^ (h >> 33)


def mix_keys(a, b):
    return scramble((scramble((a + 0x9E3779B97F4A7C15) & MASK) + b) & MASK)


def name_key(name):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = ((h ^ c) * 0x100000001B3) & MASK
    return h


def standard_normal(stream, count):
    """A scaled sum of eight 16-bit uniform numbers."""
    words = philox(stream, np.arange(count))
    total = sum((w & np.uint64(0xFFFF)).astype(np.int64) + (w >> np.uint64(16)).astype(np.int64) for w in words)
    return (2 * total - 8 * 0xFFFF).astype(np.float64) * (1 / (2 * math.sqrt(8 * (2.0**32 - 1) / 12)))


def below(words, limit):
    return ((words[0] << np.uint64(32) | words[1]) % np.uint64(limit)).astype(np.int64)


def tokens_of(sample):
    return below(philox(mix_keys(name_key("tokens"), sample), np.arange(SEQ + 1)), VOCAB)


def label_of(sample, classes):
    return int(below(philox(mix_keys(name_key("label"), sample), np.zeros(1)), classes)[0])


def picture_of(sample):
    return standard_normal(mix_keys(name_key("features"), sample), 3 * 8 * 8).reshape(3, 8, 8)


class Weights(dict):
    def add(self, name, shape, init):
        if isinstance(init, float):
            values = init * standard_normal(name_key(name), int(np.prod(shape)))
        else:
            values = np.full(int(np.prod(shape)), {"zeros": 0.0, "ones": 1.0}[init])
        self[name] = torch.tensor(values.reshape(shape), dtype=torch.float64, requires_grad=True)

    def linear(self, name, out, into, deviation=0.02, bias=True):
        self.add(name + ".weight", (out, into), deviation)
        if bias:
            self.add(name + ".bias", (out,), "zeros")

    def norm(self, name, bias=True):
        self.add(name + ".weight", (HIDDEN,), "ones")
        if bias:
            self.add(name + ".bias", (HIDDEN,), "zeros")


DEEP = 0.02 / math.sqrt(2 * LAYERS)


def attention(qkv, heads, kv, dim, causal, rotate=False):
    """qkv: [batch, seq, (heads + 2 kv) dim], all queries, all keys, all values."""
    q, k, v = qkv.split([heads * dim, kv * dim, kv * dim], dim=-1)
    q, k, v = (x.reshape(BATCH, SEQ, -1, dim).transpose(1, 2) for x in (q, k, v))
    if rotate:
        angle = torch.outer(
            torch.arange(SEQ, dtype=torch.float64), 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        )
        cos, sin = angle.cos(), angle.sin()

        def turn(x):
            a, b = x.chunk(2, dim=-1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

        q, k = turn(q), turn(k)
    k, v = (x.repeat_interleave(heads // kv, dim=1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(dim)
    if causal:
        scores = scores.masked_fill(torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, SEQ, heads * dim)


def linear(w, name, x):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def layer_norm(w, name, x):
    return F.layer_norm(x, (HIDDEN,), w[name + ".weight"], w[name + ".bias"], 1e-5)


def rms_norm(w, name, x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"]


def gelu(x):
    return F.gelu(x, approximate="tanh")


def next_token(logits, tokens):
    return F.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))


def gpt_weights(w):
    w.add("embedding.token.weight", (VOCAB, HIDDEN), 0.02)
    w.add("embedding.position.weight", (SEQ, HIDDEN), 0.02)
    for i in range(LAYERS):
        at = f"layers.{i}."
        w.norm(at + "norm1")
        w.linear(at + "qkv", 3 * HIDDEN, HIDDEN)
        w.linear(at + "projection", HIDDEN, HIDDEN, DEEP)
        w.norm(at + "norm2")
        w.linear(at + "fc1", 4 * HIDDEN, HIDDEN)
        w.linear(at + "fc2", HIDDEN, 4 * HIDDEN, DEEP)
    w.norm("head.norm")


def gpt_loss(w, tokens, labels):
    x = w["embedding.token.weight"][tokens[:, :-1]] + w["embedding.position.weight"]
    for i in range(LAYERS):
        at = f"layers.{i}."
        x = x + linear(w, at + "projection", attention(linear(w, at + "qkv", layer_norm(w, at + "norm1", x)), 4, 4, 16, True))
        x = x + linear(w, at + "fc2", gelu(linear(w, at + "fc1", layer_norm(w, at + "norm2", x))))
    return next_token(layer_norm(w, "head.norm", x) @ w["embedding.token.weight"].T, tokens)


def llama_weights(w):
    w.add("embedding.token.weight", (VOCAB, HIDDEN), 0.02)
    for i in range(LAYERS):
        at = f"layers.{i}."
        w.norm(at + "norm1", bias=False)
        w.linear(at + "qkv", (8 + 2 * 4) * 8, HIDDEN, bias=False)
        w.linear(at + "projection", HIDDEN, HIDDEN, DEEP, bias=False)
        w.norm(at + "norm2", bias=False)
        w.linear(at + "fc1", 2 * 96, HIDDEN, bias=False)
        w.linear(at + "fc2", HIDDEN, 96, DEEP, bias=False)
    w.norm("head.norm", bias=False)
    w.linear("head.vocab", VOCAB, HIDDEN, bias=False)


def llama_loss(w, tokens, labels):
    x = w["embedding.token.weight"][tokens[:, :-1]]
    for i in range(LAYERS):
        at = f"layers.{i}."
        qkv = linear(w, at + "qkv", rms_norm(w, at + "norm1", x))
        x = x + linear(w, at + "projection", attention(qkv, 8, 4, 8, True, rotate=True))
        gate, up = linear(w, at + "fc1", rms_norm(w, at + "norm2", x)).chunk(2, dim=-1)
        x = x + linear(w, at + "fc2", F.silu(gate) * up)
    return next_token(linear(w, "head.vocab", rms_norm(w, "head.norm", x)), tokens)


def bert_weights(w):
    w.add("embedding.token.weight", (VOCAB, HIDDEN), 0.02)
    w.add("embedding.position.weight", (SEQ, HIDDEN), 0.02)
    w.add("embedding.token_type.weight", (2, HIDDEN), 0.02)
    w.norm("embedding.norm")
    for i in range(LAYERS):
        at = f"layers.{i}."
        w.linear(at + "qkv", 3 * HIDDEN, HIDDEN)
        w.linear(at + "projection", HIDDEN, HIDDEN, DEEP)
        w.norm(at + "norm1")
        w.linear(at + "fc1", 4 * HIDDEN, HIDDEN)
        w.linear(at + "fc2", HIDDEN, 4 * HIDDEN, DEEP)
        w.norm(at + "norm2")
    w.linear("head.pooler", HIDDEN, HIDDEN)
    w.linear("head.next_sentence", 2, HIDDEN)
    w.linear("head.transform", HIDDEN, HIDDEN)
    w.norm("head.transform_norm")
    w.add("head.vocab.bias", (VOCAB,), "zeros")


def bert_loss(w, tokens, labels):
    types = torch.arange(SEQ) * 2 // SEQ
    x = w["embedding.token.weight"][tokens[:, :-1]] + w["embedding.position.weight"] + w["embedding.token_type.weight"][types]
    x = layer_norm(w, "embedding.norm", x)
    for i in range(LAYERS):
        at = f"layers.{i}."
        y = linear(w, at + "projection", attention(linear(w, at + "qkv", x), 4, 4, 16, False))
        x = layer_norm(w, at + "norm1", x + y)
        x = layer_norm(w, at + "norm2", x + linear(w, at + "fc2", gelu(linear(w, at + "fc1", x))))
    sentence = linear(w, "head.next_sentence", torch.tanh(linear(w, "head.pooler", x[:, 0])))
    y = layer_norm(w, "head.transform_norm", gelu(linear(w, "head.transform", x)))
    logits = y @ w["embedding.token.weight"].T + w["head.vocab.bias"]
    return next_token(logits, tokens) + F.cross_entropy(sentence, labels)


MICRO_BATCH, CLASSES = 2, 5


def cnn_weights(w):
    def conv(name, norm, out, into, kernel):
        deviation = float("%.12g" % math.sqrt(2 / (into * kernel * kernel)))  # He et al. 2015, as it stands in the plan
        w.add(name + ".weight", (out, into, kernel, kernel), deviation)
        w.add(norm + ".weight", (out,), "ones")
        w.add(norm + ".bias", (out,), "zeros")

    conv("conv1", "conv1.norm1", 4, 3, 3)
    conv("a.conv1", "a.bn1", 2, 4, 1)
    conv("a.conv2", "a.bn2", 2, 2, 3)
    conv("a.conv3", "a.bn3", 8, 2, 1)
    conv("a.down", "a.down.bn", 8, 4, 1)
    conv("b.conv1", "b.conv1.norm1", 8, 8, 3)
    w.linear("fc", CLASSES, 8)


def cnn_loss(w, pictures, labels):
    """Every micro-batch is normalised by its own statistics."""

    def conv(x, name, norm, stride=1):
        x = F.conv2d(x, w[name + ".weight"], stride=stride, padding=w[name + ".weight"].shape[-1] // 2)
        return F.batch_norm(x, None, None, w[norm + ".weight"], w[norm + ".bias"], training=True, eps=1e-5)

    loss = 0
    for first in range(0, BATCH, MICRO_BATCH):
        x = F.relu(conv(pictures[first : first + MICRO_BATCH], "conv1", "conv1.norm1"))
        x = F.max_pool2d(x, 3, 2, 1)
        y = F.relu(conv(x, "a.conv1", "a.bn1"))
        y = F.relu(conv(y, "a.conv2", "a.bn2", 2))
        x = F.relu(conv(y, "a.conv3", "a.bn3") + conv(x, "a.down", "a.down.bn", 2))
        x = F.relu(conv(x, "b.conv1", "b.conv1.norm1") + x)
        logits = linear(w, "fc", F.avg_pool2d(x, 2, 2).flatten(1))
        loss = loss + F.cross_entropy(logits, labels[first : first + MICRO_BATCH], reduction="sum") / BATCH
    return loss


def line(part, name, tensor):
    x = tensor.detach().numpy().reshape(-1)
    numbers = [np.linalg.norm(x)]
    for v in range(VECTORS):
        numbers.append(float(x @ standard_normal(mix_keys(name_key("projection of " + name), v), x.size)))
    print(part, name, *(repr(float(n)) for n in numbers))


def main(wanted):
    from coded import CODED
    from decoders import DECODERS
    from mixtures import MIXTURES

    print("# Written by torch_oracle.py: gradients of step 2 and values after it; norm, then products with random vectors.")
    models = {
        "gpt": (gpt_weights, gpt_loss),
        "llama": (llama_weights, llama_loss),
        "bert": (bert_weights, bert_loss),
        "cnn": (cnn_weights, cnn_loss),
    }
    models.update((d.name, (d.weights, d.loss)) for d in DECODERS + MIXTURES + CODED)
    for model in wanted or models:
        make, loss_of = models[model]
        w = Weights()
        make(w)
        adam = torch.optim.AdamW(w.values(), lr=1e-2, betas=(0.9, 0.999), eps=1e-5, weight_decay=0.1)
        print("model", model)
        for step in range(STEPS):
            samples = range(step * BATCH, (step + 1) * BATCH)
            inputs = torch.tensor(np.stack([(picture_of if model == "cnn" else tokens_of)(s) for s in samples]))
            labels = torch.tensor([label_of(s, CLASSES if model == "cnn" else 2) for s in samples])
            adam.zero_grad()
            loss = loss_of(w, inputs, labels)
            loss.backward()
            adam.step()
            print("loss", repr(loss.item()))
        for name, tensor in w.items():
            line("gradient", name, tensor.grad)
            line("value", name, tensor)


if __name__ == "__main__":
    main(sys.argv[1:])

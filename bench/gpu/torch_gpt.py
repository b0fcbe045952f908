#!/usr/bin/env python3
"""The GPT of run.sh in PyTorch: bf16 autocast, fused attention through scaled_dot_product_attention, torch.compile, AdamW with fp32 weights; with the
initial weights (safetensors) and the samples of `foreshard run --data`. The last line is JSON: losses, seconds of a step (median of those after the third),
memory."""
import argparse
import json
import statistics
import struct
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.fc1, self.fc2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = (t.view(b, s, self.heads, h // self.heads).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(b, s, h))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, positions):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(positions, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def read_weights(path):
    """The fp32 tensors of a safetensors file, by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        begin = file.tell()
        found = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            assert entry["dtype"] == "F32", (name, entry["dtype"])
            first, last = entry["data_offsets"]
            file.seek(begin + first)
            found[name] = torch.frombuffer(bytearray(file.read(last - first)), dtype=torch.float32).reshape(entry["shape"])
        return found


def load(model, weights):
    """Every parameter has one tensor of the file, and the other way round."""
    def name_of(name):
        name = name.replace("token.", "embedding.token.").replace("position.", "embedding.position.")
        return name.replace("blocks.", "layers.") if name.startswith("blocks.") else name.replace("norm.", "head.norm.")

    left = dict(weights)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            found = left.pop(name_of(name))
            parameter.copy_(found.to(parameter.device))
    assert not left, sorted(left)


# exec/base/philox.h, exec/data/file_samples.cpp: where the window of a sample begins.
MASK = 0xFFFFFFFFFFFFFFFF


def scramble(h):
    h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCD & MASK
    h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53 & MASK
    return h ^ (h >> 33)


def philox(seed, stream, index):
    counter, key = [index & 0xFFFFFFFF, index >> 32, stream & 0xFFFFFFFF, stream >> 32], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def window(seed, sample, windows):
    name = 0xCBF29CE484222325
    for letter in b"window":
        name = (name ^ letter) * 0x100000001B3 & MASK
    words = philox(seed, scramble((scramble(name + 0x9E3779B97F4A7C15 & MASK) + sample) & MASK), 0)
    return (words[0] << 32 | words[1]) % windows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("layers", "hidden", "heads", "sequence", "vocabulary", "micro-batch", "microbatches", "steps"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--tokens", required=True, help="16-bit, little-endian")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--eager", action="store_true")
    a = parser.parse_args()
    on_gpu = a.device == "cuda"
    with open(a.tokens, "rb") as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.int16).to(a.device).to(torch.int64) & 0xFFFF
    plain = Gpt(a.layers, a.hidden, a.heads, a.vocabulary, a.sequence).to(a.device)
    load(plain, read_weights(a.weights))
    model = plain if a.eager else torch.compile(plain)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, **({"fused": True} if on_gpu else {}))
    wait = torch.cuda.synchronize if on_gpu else lambda: None

    def batch(step, microbatch):
        first = (step * a.microbatches + microbatch) * a.micro_batch
        begins = [window(a.seed, first + i, len(data) - a.sequence) for i in range(a.micro_batch)]
        return torch.stack([data[begin : begin + a.sequence + 1] for begin in begins])

    times, losses = [], []
    for step in range(a.steps):
        batches = [batch(step, m) for m in range(a.microbatches)]
        wait()
        begin, sum_of_losses = time.perf_counter(), 0
        for tokens in batches:
            with torch.autocast(a.device, torch.bfloat16, enabled=a.precision == "bf16"):
                loss = model(tokens[:, :-1], tokens[:, 1:]) / a.microbatches
            loss.backward()
            sum_of_losses = sum_of_losses + loss.detach()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        wait()
        times.append(time.perf_counter() - begin)
        losses.append(float(sum_of_losses))
    found = {"version": torch.__version__, "losses": losses, "iteration_time_s": statistics.median(times[3:] or times)}
    if on_gpu:
        found.update(allocated_bytes=torch.cuda.max_memory_allocated(), reserved_bytes=torch.cuda.max_memory_reserved())
    print(json.dumps(found))


if __name__ == "__main__":
    main()

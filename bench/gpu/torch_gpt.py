"""The GPT of bench/gpu/run.sh in PyTorch: bf16 autocast, flash attention through scaled_dot_product_attention, torch.compile, AdamW with
fp32 weights. Prints one line: iteration time and tokens per second (median of the steps after the third)."""
import argparse
import statistics
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
    def __init__(self, layers, hidden, heads, vocab, positions):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("layers", "hidden", "heads", "sequence", "micro-batch"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--vocab", type=int, default=50304)
    parser.add_argument("--microbatches", type=int, default=2)
    a = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(Gpt(a.layers, a.hidden, a.heads, a.vocab, a.sequence).cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0, fused=True)
    times = []
    for _ in range(a.steps + 3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(a.microbatches):
            tokens = torch.randint(a.vocab, (a.micro_batch, a.sequence + 1), device="cuda")
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(tokens[:, :-1], tokens[:, 1:]) / a.microbatches
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    t = statistics.median(times[3:])
    samples = a.micro_batch * a.microbatches
    print(f"PyTorch {torch.__version__}: {t * 1e3:.2f} ms, {samples * a.sequence / t:.0f} tokens/s, "
          f"peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()

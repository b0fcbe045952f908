"""Models of torch_oracle.py and mixtures.py with compressed communication, on one device that makes what ranks would have sent: the tiny GPT
with sums of activations of two tensor-parallel ranks, with and without sequence parallelism, and a mixture whose rows of tokens go to the experts of four ranks.

Written from docs/compression.md and the forms of payloads in core/op/codec.h, core/op/token_rows.h. Ranks are slices of whole weights.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F
from mixtures import EXPERTS, Mixture, mixtral
from torch_oracle import BATCH, HIDDEN, LAYERS, MICRO_BATCH, SEQ, VOCAB, gelu, gpt_weights, layer_norm, linear

RANKS, HEADS, DIM, BINS, CANDIDATES = 2, 4, 16, 4096, 128


def below_bins(x, low, high):
    """[bin]: how many numbers are in lower ones."""
    bins = np.clip(((x - low) * (BINS / (high - low))).astype(np.int64), 0, BINS - 1)
    return np.concatenate([[0], np.cumsum(np.bincount(bins, minlength=BINS))])


def border(low, high, place):
    return high if place == BINS else low + (high - low) * (place / BINS)


def centre_borders(x):
    """Two tails and a centre [-c, c], which has half of the levels: c with the least error among 4095."""
    high = np.abs(x).max()
    inside = below_bins(np.abs(x), 0.0, high)[1:BINS]
    c = np.arange(1, BINS)
    best = border(0.0, high, int(c[np.argmin(inside * c * c + (x.size - inside) * (BINS - c) ** 2)]))
    return [-high, -best, 0.0, best, high]


def equal_borders(x, segments):
    """The borders of `segments` with equally many levels: the shortest path over the candidates, of the edges' errors."""
    low, high = x.min(), x.max()
    below = below_bins(x, low, high)
    places = [p for p in range(BINS + 1) if p % (BINS // CANDIDATES) == 0]
    shares = [int(np.argmax(below * CANDIDATES >= share * x.size)) for share in range(1, CANDIDATES)]
    places = np.array(sorted(set(places + shares)))
    error = (below[places][None, :] - below[places][:, None]) * (places[None, :] - places[:, None]) ** 2.0
    error[np.tril_indices(len(places))] = math.inf
    best, steps = np.where(places == 0, 0.0, math.inf), []
    for _ in range(segments):
        paths = best[:, None] + error
        steps.append(paths.argmin(0))
        best = paths.min(0)
    chosen = [len(places) - 1]
    for step in reversed(steps):
        chosen.append(step[chosen[-1]])
    return [border(low, high, places[j]) for j in reversed(chosen)]


def coded(x, bits, segments):
    """What arrives of an array that is sent as segments and levels."""
    if not x.any():
        return x
    borders = np.array(equal_borders(x, segments) if segments else centre_borders(x)).astype(np.float32).astype(np.float64)
    levels = 2**bits // (len(borders) - 1)
    segment = np.searchsorted(borders[1:-1], x, side="right")
    width = (borders[1:] - borders[:-1]) / levels
    level = np.clip(((x - borders[segment]) / width[segment]).astype(np.int64), 0, levels - 1)
    return borders[segment] + (level + 0.5) * width[segment]


def coded_sum(ranks, bits, segments):
    """ranks: [rank, sample, position, feature]. Each part is added by one rank, and sent on as codes again."""
    rows = ranks.detach().numpy().transpose(0, 2, 1, 3)  # as they lie: position, sample, feature
    flat = rows.reshape(RANKS, -1)
    part = math.ceil(flat.shape[1] / RANKS / 32) * 32
    parts = [flat[:, at : at + part] for at in range(0, flat.shape[1], part)]
    whole = np.concatenate([coded(sum(coded(rank, bits, segments) for rank in p), bits, segments) for p in parts])
    return torch.tensor(whole.reshape(rows.shape[1:]).transpose(1, 0, 2).copy())


def coded_parts(rows, bits, segments):
    """rows: [sample, position, feature]. Each rank's part of the positions is sent as codes of its own."""
    parts = [coded(part.transpose(1, 0, 2).ravel(), bits, segments).reshape(part.shape[1], part.shape[0], -1).transpose(1, 0, 2)
             for part in np.split(rows, RANKS, axis=1)]
    return np.concatenate(parts, axis=1)


def scattered_sums_of(bits, segments):
    """With sequence parallelism: each rank has a part of the positions."""
    def sent(x):
        return torch.tensor(coded_parts(x.detach().numpy(), bits, segments))

    class Add(torch.autograd.Function):  # a reduce-scatter; the gradient is gathered
        @staticmethod
        def forward(ctx, *ranks):
            return sum(sent(x) for x in ranks)

        @staticmethod
        def backward(ctx, gradient):
            return (sent(gradient),) * RANKS

    class Share(torch.autograd.Function):  # a gather; gradients are reduced and scattered
        @staticmethod
        def forward(ctx, x):
            return tuple(sent(x) for _ in range(RANKS))

        @staticmethod
        def backward(ctx, *ranks):
            return sum(sent(x) for x in ranks)

    return Add.apply, Share.apply


def sums_of(bits, segments):
    class Add(torch.autograd.Function):  # partial sums of ranks; each has the gradient of the sum
        @staticmethod
        def forward(ctx, *ranks):
            return coded_sum(torch.stack(ranks), bits, segments)

        @staticmethod
        def backward(ctx, gradient):
            return (gradient,) * RANKS

    class Share(torch.autograd.Function):  # what all ranks read; their gradients are added
        @staticmethod
        def forward(ctx, x):
            return tuple(x.clone() for _ in range(RANKS))

        @staticmethod
        def backward(ctx, *ranks):
            return coded_sum(torch.stack(ranks), bits, segments)

    return Add.apply, Share.apply


def slice_of(size, rank):
    return slice(rank * size // RANKS, (rank + 1) * size // RANKS)


class CodedGpt:
    """tokens: the share whose rows are added; 0: all. code: bits and segments (0: a centre and two tails), or nothing."""

    def __init__(self, name, tokens=0, code=None, sequence=False):
        self.name, self.parts = name, RANKS if sequence else 1  # of the sequence, which keep equally many tokens
        self.kept = self.parts * math.ceil(tokens * SEQ / self.parts)
        self.add, self.share = (lambda *ranks: sum(ranks)), (lambda x: (x,) * RANKS)
        if code:
            self.add, self.share = (scattered_sums_of if sequence else sums_of)(*code)

    def weights(self, w):
        gpt_weights(w)

    def of_kept(self, ranks, kept):
        """The sum of the rows that are kept; the others are 0."""
        if kept is None:
            return self.add(*ranks)
        places = kept[..., None].expand(*kept.shape, HIDDEN)
        return torch.zeros_like(ranks[0]).scatter(1, places, self.add(*[x.gather(1, places) for x in ranks]))

    def attention(self, qkv):
        """Results and probabilities of a rank's heads."""
        q, k, v = (x.reshape(*x.shape[:2], HEADS // RANKS, DIM).transpose(1, 2) for x in qkv.chunk(3, dim=-1))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(DIM)).masked_fill(torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1), -math.inf)
        p = scores.softmax(-1)
        return (p @ v).transpose(1, 2).flatten(2), p

    def kept_tokens(self, probabilities):
        """Rising places of the first token and of those that get the most attention, of each part of the sequence."""
        if not self.kept:
            return None
        scores = sum(p.detach().sum((1, 2)) for p in probabilities)
        scores[:, 0] = math.inf
        each = SEQ // self.parts
        return torch.cat([scores[:, first : first + each].topk(self.kept // self.parts).indices.sort().values + first
                          for first in range(0, SEQ, each)], dim=1)

    def layer(self, w, at, x):
        each = range(RANKS)
        heads, hidden = [slice_of(HIDDEN, r) for r in each], [slice_of(4 * HIDDEN, r) for r in each]
        rows = [np.r_[h, h.start + HIDDEN : h.stop + HIDDEN, h.start + 2 * HIDDEN : h.stop + 2 * HIDDEN] for h in heads]
        shared = self.share(layer_norm(w, at + "norm1", x))
        found = [self.attention(F.linear(shared[r], w[at + "qkv.weight"][rows[r]], w[at + "qkv.bias"][rows[r]])) for r in each]
        kept = self.kept_tokens([p for _, p in found])
        x = x + self.of_kept([F.linear(found[r][0], w[at + "projection.weight"][:, heads[r]]) for r in each], kept)
        x = x + w[at + "projection.bias"]
        shared = self.share(layer_norm(w, at + "norm2", x))
        wide = [gelu(F.linear(shared[r], w[at + "fc1.weight"][hidden[r]], w[at + "fc1.bias"][hidden[r]])) for r in each]
        return x + self.of_kept([F.linear(wide[r], w[at + "fc2.weight"][:, hidden[r]]) for r in each], kept) + w[at + "fc2.bias"]

    def micro_batch(self, w, tokens):
        words = [slice_of(VOCAB, r) for r in range(RANKS)]
        inputs, table = tokens[:, :-1], w["embedding.token.weight"]
        own = [((inputs >= s.start) & (inputs < s.stop))[..., None] * table[inputs] for s in words]
        x = self.add(*own) + w["embedding.position.weight"]
        for i in range(LAYERS):
            x = self.layer(w, f"layers.{i}.", x)
        shared = self.share(layer_norm(w, "head.norm", x))
        logits = torch.cat([shared[r] @ table[words[r]].T for r in range(RANKS)], dim=-1)
        return F.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1), reduction="sum") / (BATCH * SEQ)

    def loss(self, w, tokens, labels):
        return sum(self.micro_batch(w, tokens[first : first + MICRO_BATCH]) for first in range(0, BATCH, MICRO_BATCH))


def in_floats(rows):
    """E4M3 of 128 numbers each, after the largest power of two with which they fit."""
    blocks = F.pad(rows.flatten().float(), (0, -rows.numel() % 128)).reshape(-1, 128)
    mantissa, exponent = torch.frexp(blocks.abs().amax(1, keepdim=True))  # mantissa in [0.5, 1)
    scale = torch.where(mantissa > 0, 2.0 ** (9 - exponent - (mantissa > 0.875).int()), 1.0)
    sent = (blocks * scale).to(torch.float8_e4m3fn).float() / scale
    return sent.flatten()[: rows.numel()].reshape(rows.shape).double()


def in_bytes(rows):
    """Integers of 256 numbers each, 127 for the largest."""
    blocks = F.pad(rows.flatten(), (0, -rows.numel() % 256)).reshape(-1, 256)
    largest = blocks.abs().amax(1, keepdim=True).float().double()
    sent = torch.where(largest > 0, (blocks * (127 / largest)).round().clamp(-127, 127) * (largest / 127), 0.0)
    return sent.flatten()[: rows.numel()].reshape(rows.shape)


def there_and_back(code):
    class There(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows):
            return code(rows)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Back(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows):
            return rows.clone()

        @staticmethod
        def backward(ctx, gradient):
            return code(gradient)

    return There.apply, Back.apply


class CodedMixture(Mixture):
    """Rows go from each rank, which has a micro-batch, to each other rank with their codes, sorted by expert and by token."""

    RANKS = BATCH // MICRO_BATCH

    def __init__(self, name, code):
        super().__init__(name, route=mixtral)
        self.there, self.back = there_and_back(code)

    def feed_forward(self, w, at, x):
        weights, chosen = self.route(linear(w, at + "router", x))
        y = torch.zeros_like(x)
        each = EXPERTS // self.RANKS
        for first in range(0, BATCH, MICRO_BATCH):
            own = chosen[first : first + MICRO_BATCH]
            for member in range(self.RANKS):
                experts = range(member * each, (member + 1) * each)
                # Tokens lie as position, sample.
                places = [torch.where((own == e).transpose(0, 1)) for e in experts]
                position, sample, choice = (torch.cat(p) for p in zip(*places))
                sample = sample + first
                sent = self.there(x[sample, position]).split([len(p[0]) for p in places])
                rows = self.back(torch.cat([self.expert(w, at, e, r) for e, r in zip(experts, sent)]))
                y = y.index_put((sample, position), weights[sample, position, choice].unsqueeze(-1) * rows, accumulate=True)
        return y


CODED = [
    CodedGpt("gpt-segmented:8", code=(8, 0)),
    CodedGpt("gpt-segmented:4", code=(4, 0)),
    CodedGpt("gpt-segmented:4x8", code=(4, 8)),
    CodedGpt("gpt-token-topk:0.5", tokens=0.5),
    CodedGpt("gpt-token-topk:0.5,segmented:8", tokens=0.5, code=(8, 0)),
    CodedGpt("gpt-token-topk:0.3,segmented:4x8", tokens=0.3, code=(4, 8)),
    CodedGpt("sequence-segmented:8", code=(8, 0), sequence=True),
    CodedGpt("sequence-token-topk:0.3", tokens=0.3, sequence=True),
    CodedGpt("sequence-token-topk:0.5,segmented:4x8", tokens=0.5, code=(4, 8), sequence=True),
    CodedMixture("mixtral-fp8", in_floats),
    CodedMixture("mixtral-eight-bit", in_bytes),
]

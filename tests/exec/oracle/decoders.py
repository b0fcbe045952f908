"""The tiny decoders of tests/exec/modern_models.h, written with PyTorch's own functions from their definitions in transformers."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch_oracle import BATCH, DEEP, HIDDEN, LAYERS, SEQ, VOCAB, gelu, linear, next_token

EPS = 1e-5
FFN, HEADS, DIM = 96, 4, 8


def rms(x, weight=None):
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)
    return x if weight is None else x * weight


def turn(x, theta):
    """Rotary positions of the last dimension, [batch, heads, seq, dim]."""
    dim = x.shape[-1]
    frequency = theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequency)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)


def softmax_attention(q, k, v, scale, mask, cap=0.0, sinks=None):
    """[batch, heads, seq, dim] each; mask: what a query sees. A sink is one more column of the softmax, without a value."""
    scores = q @ k.transpose(-1, -2) * scale
    if cap:
        scores = cap * torch.tanh(scores / cap)
    scores = scores.masked_fill(~mask, -math.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)], dim=-1)
    p = scores.softmax(-1)[..., : k.shape[-2]]
    return (p @ v).transpose(1, 2).reshape(BATCH, SEQ, -1)


@dataclass
class Decoder:
    name: str
    kv: int = 2
    qk_norm: str = ""  # "head", "all", "plain"
    window: int = 0
    chunk: int = 0
    local: tuple = (True, True)
    local_theta: float = 0.0
    theta: float = 10000.0
    rotated: int = DIM
    full_unrotated: bool = False
    scale: float = 1 / math.sqrt(DIM)
    cap: float = 0.0
    sinks: bool = False
    bias: bool = False  # of query, key and value
    biases: bool = False  # of the other products
    input_norms: bool = True
    branch_norms: bool = False
    around_one: bool = False
    mlp: str = "swiglu"
    tied: bool = False
    embedding: float = 1.0
    residual: float = 1.0
    logits: float = 1.0
    logit_cap: float = 0.0

    def norm_weight(self, w, name, width):
        w.add(name + ".weight", (width,), "zeros" if self.around_one else "ones")

    def norm(self, w, name, x):
        weight = w[name + ".weight"]
        return rms(x, 1 + weight if self.around_one else weight)

    def attention_weights(self, w, at):
        w.linear(at + "qkv", (HEADS + 2 * self.kv) * DIM, HIDDEN, bias=self.bias)
        if self.qk_norm in ("head", "all"):
            self.norm_weight(w, at + "q_norm", DIM if self.qk_norm == "head" else HEADS * DIM)
            self.norm_weight(w, at + "k_norm", DIM if self.qk_norm == "head" else self.kv * DIM)
        if self.sinks:
            w.add(at + "sinks", (HEADS,), 0.02)
        w.linear(at + "projection", HIDDEN, HEADS * DIM, DEEP, bias=self.biases)

    def mlp_weights(self, w, at, layer):
        w.linear(at + "fc1", 2 * FFN, HIDDEN, bias=self.biases)
        w.linear(at + "fc2", HIDDEN, FFN, DEEP, bias=self.biases)

    def weights(self, w):
        w.add("embedding.token.weight", (VOCAB, HIDDEN), 0.02)
        for i in range(LAYERS):
            at = f"layers.{i}."
            self.attention_weights(w, at)
            self.mlp_weights(w, at, i)
            for name in ("norm1", "norm2") if self.input_norms else ():
                self.norm_weight(w, at + name, HIDDEN)
            for name in ("branch_norm1", "branch_norm2") if self.branch_norms else ():
                self.norm_weight(w, at + name, HIDDEN)
        self.norm_weight(w, "head.norm", HIDDEN)
        if not self.tied:
            w.linear("head.vocab", VOCAB, HIDDEN, bias=False)

    def mask(self, local):
        q, k = torch.arange(SEQ).reshape(-1, 1), torch.arange(SEQ).reshape(1, -1)
        seen = k <= q
        if local and self.window:
            seen = seen & (q - k < self.window)
        if local and self.chunk:
            seen = seen & (q // self.chunk == k // self.chunk)
        return seen

    def rotate(self, x, local):
        if self.full_unrotated and not local:
            return x
        theta = self.local_theta if local and self.local_theta else self.theta
        return torch.cat([turn(x[..., : self.rotated], theta), x[..., self.rotated :]], dim=-1)

    def attend(self, w, at, x, local):
        q, k, v = linear(w, at + "qkv", x).split([HEADS * DIM, self.kv * DIM, self.kv * DIM], dim=-1)
        if self.qk_norm == "all":
            q, k = self.norm(w, at + "q_norm", q), self.norm(w, at + "k_norm", k)
        q, k, v = (y.reshape(BATCH, SEQ, -1, DIM).transpose(1, 2) for y in (q, k, v))
        if self.qk_norm == "head":
            q, k = self.norm(w, at + "q_norm", q), self.norm(w, at + "k_norm", k)
        q, k = self.rotate(q, local), self.rotate(k, local)
        if self.qk_norm == "plain" and local:
            q, k = rms(q), rms(k)
        k, v = (y.repeat_interleave(HEADS // self.kv, dim=1) for y in (k, v))
        return softmax_attention(q, k, v, self.scale, self.mask(local), self.cap, w.get(at + "sinks"))

    def gated(self, gate, up):
        if self.mlp == "geglu":
            return gelu(gate) * up
        if self.mlp == "clamped":
            gate, up = gate.clamp(max=7), up.clamp(-7, 7)
            return (up + 1) * gate * torch.sigmoid(1.702 * gate)
        return F.silu(gate) * up

    def feed_forward(self, w, at, x):
        gate, up = linear(w, at + "fc1", x).chunk(2, dim=-1)
        return linear(w, at + "fc2", self.gated(gate, up))

    def branch(self, w, at, number, x, f):
        y = f(self.norm(w, at + "norm" + number, x) if self.input_norms else x)
        if self.branch_norms:
            y = self.norm(w, at + "branch_norm" + number, y)
        return x + self.residual * y

    def loss(self, w, tokens, labels):
        x = self.embedding * w["embedding.token.weight"][tokens[:, :-1]]
        for i in range(LAYERS):
            at, local = f"layers.{i}.", self.local[i % len(self.local)] and bool(self.window or self.chunk)
            x = self.branch(w, at, "1", x, lambda y: linear(w, at + "projection", self.attend(w, at, y, local)))
            x = self.branch(w, at, "2", x, lambda y: self.feed_forward(w, at, y))
        head = w["embedding.token.weight" if self.tied else "head.vocab.weight"]
        logits = self.logits * (self.norm(w, "head.norm", x) @ head.T)
        if self.logit_cap:
            logits = self.logit_cap * torch.tanh(logits / self.logit_cap)
        return next_token(logits, tokens)


@dataclass
class Latent(Decoder):
    """DeepSeek-V2, arXiv:2405.04434, equations 9 to 19."""

    rq: int = 0
    rkv: int = 16
    plain: int = 8
    turned: int = 4
    value: int = 6

    def attention_weights(self, w, at):
        if self.rq:
            w.linear(at + "q_down", self.rq, HIDDEN, bias=False)
            self.norm_weight(w, at + "q_latent_norm", self.rq)
        w.linear(at + "q_up", HEADS * (self.plain + self.turned), self.rq or HIDDEN, bias=False)
        w.linear(at + "kv_down", self.rkv + self.turned, HIDDEN, bias=False)
        self.norm_weight(w, at + "kv_latent_norm", self.rkv)
        w.linear(at + "kv_up", HEADS * (self.plain + self.value), self.rkv, bias=False)
        w.linear(at + "projection", HIDDEN, HEADS * self.value, DEEP, bias=False)

    def attend(self, w, at, x, local):
        heads = lambda y, dim: y.reshape(BATCH, SEQ, -1, dim).transpose(1, 2)
        q = self.norm(w, at + "q_latent_norm", linear(w, at + "q_down", x)) if self.rq else x
        q_plain, q_turned = heads(linear(w, at + "q_up", q), self.plain + self.turned).split([self.plain, self.turned], dim=-1)
        latent, shared = linear(w, at + "kv_down", x).split([self.rkv, self.turned], dim=-1)
        up = linear(w, at + "kv_up", self.norm(w, at + "kv_latent_norm", latent))
        k, v = up.split([HEADS * self.plain, HEADS * self.value], dim=-1)
        shared = turn(heads(shared, self.turned), self.theta).expand(-1, HEADS, -1, -1)
        q = torch.cat([q_plain, turn(q_turned, self.theta)], dim=-1)
        k = torch.cat([heads(k, self.plain), shared], dim=-1)
        return softmax_attention(q, k, heads(v, self.value), 1 / math.sqrt(self.plain + self.turned), self.mask(False))


GEMMA = dict(branch_norms=True, around_one=True, embedding=8.0, mlp="geglu")
DECODERS = [
    Decoder("qwen3", qk_norm="head"),
    Decoder("olmo2", qk_norm="all", input_norms=False, branch_norms=True),
    Decoder("gemma2", window=6, local=(True, False), scale=0.5, cap=0.1, logit_cap=0.3, tied=True, **GEMMA),
    Decoder("gemma3", window=5, local=(True, True, False), local_theta=100.0, theta=1e6, qk_norm="head", **GEMMA),
    Decoder("gpt_oss", window=6, local=(True, False), sinks=True, bias=True, biases=True, mlp="clamped"),
    Decoder("llama4", chunk=8, local=(True, False), qk_norm="plain", full_unrotated=True),
    Decoder("glm4", rotated=4, qk_norm="head", bias=True),
    Decoder("granite", scale=0.3, tied=True, embedding=3.0, residual=0.22, logits=0.25),
    Latent("deepseek", rq=24, plain=6, value=8),
    Latent("deepseek_lite"),
]

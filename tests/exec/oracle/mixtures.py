"""The tiny mixtures of experts of tests/exec/mixture_models.h, written with PyTorch's own functions from the papers.

Every expert is a gated MLP of the tokens that chose it, taken one after the other. The load-balancing loss of a micro-batch acts on
gradients; the loss that is printed is without it.
"""
from dataclasses import dataclass, field

import torch
from decoders import Decoder, Latent
from torch_oracle import BATCH, DEEP, HIDDEN, MICRO_BATCH, linear

EXPERTS, WIDTH = 8, 24


def mixtral(logits):
    """Jiang et al. 2024, arXiv:2401.04088, section 2.1: the two largest weights of the softmax, over their sum."""
    weights, chosen = logits.softmax(-1).topk(2)
    return weights / weights.sum(-1, keepdim=True), chosen


def olmoe(logits):
    """Muennighoff et al. 2024, arXiv:2409.02060, section 2: the largest weights of the softmax, as they are."""
    return logits.softmax(-1).topk(2)


def deepseek_v3(logits):
    """DeepSeek-V3, arXiv:2412.19437, equations 12 to 15 and section 2.1.2: sigmoids; of 4 groups the two whose best two experts have the
    largest sum; the chosen over their sum, times 2.5."""
    scores = logits.sigmoid()
    groups = scores.reshape(*scores.shape[:-1], 4, 2).topk(2).values.sum(-1).topk(2).indices
    allowed = torch.zeros(*scores.shape[:-1], 4, dtype=torch.bool).scatter(-1, groups, True).repeat_interleave(2, dim=-1)
    chosen = scores.masked_fill(~allowed, 0.0).topk(2).indices
    weights = scores.gather(-1, chosen)
    return 2.5 * weights / weights.sum(-1, keepdim=True), chosen


def gpt_oss(logits):
    """gpt-oss model card, arXiv:2508.10925, section 2.2: the softmax over the largest logits."""
    largest, chosen = logits.topk(2)
    return largest.softmax(-1), chosen


def llama4(logits):
    """The sigmoid of the largest logit."""
    largest, chosen = logits.topk(1)
    return largest.sigmoid(), chosen


@dataclass
class Mixture(Decoder):
    route: object = None
    layers: tuple = (True,)  # which have experts, repeated
    shared: int = 0  # columns of the experts that all tokens pass
    scaled_inputs: bool = False
    expert_biases: bool = False  # and a bias of the router
    sigmoid: bool = False  # shares of the load-balancing loss are of sigmoids
    balance: float = 0.0  # coefficient of that loss
    z: float = 0.0  # coefficient of the router's z-loss
    losses: list = field(default_factory=list)

    def mlp_weights(self, w, at, layer):
        if not self.layers[layer % len(self.layers)]:
            return super().mlp_weights(w, at, layer)
        w.linear(at + "router", EXPERTS, HIDDEN, bias=self.expert_biases)
        for name, deviation in (("gate", 0.02), ("up", 0.02), ("down", DEEP)):
            w.add(at + f"experts.{name}.weight", (EXPERTS, WIDTH, HIDDEN), deviation)
            if self.expert_biases:
                w.add(at + f"experts.{name}.bias", (EXPERTS, HIDDEN if name == "down" else WIDTH), "zeros")
        if self.shared:
            w.linear(at + "shared_fc1", 2 * self.shared, HIDDEN, bias=False)
            w.linear(at + "shared_fc2", HIDDEN, self.shared, DEEP, bias=False)

    def expert(self, w, at, e, x):
        def bias(name):
            return w[at + f"experts.{name}.bias"][e] if self.expert_biases else 0.0

        gate = x @ w[at + "experts.gate.weight"][e].T + bias("gate")
        up = x @ w[at + "experts.up.weight"][e].T + bias("up")
        return self.gated(gate, up) @ w[at + "experts.down.weight"][e] + bias("down")

    def balance_loss(self, logits, chosen):
        """Fedus et al. 2021, arXiv:2101.03961, equations 4 to 6, for k choices of each token: E sum_i f_i P_i over the tokens of a
        micro-batch, f_i the share of the choices that fall on expert i, P_i its mean score."""
        scores = logits.sigmoid() if self.sigmoid else logits.softmax(-1)
        scores = scores / scores.sum(-1, keepdim=True)
        total = 0.0
        for first in range(0, BATCH, MICRO_BATCH):
            part = slice(first, first + MICRO_BATCH)
            shares = torch.bincount(chosen[part].reshape(-1), minlength=EXPERTS) / chosen[part].numel()
            total = total + EXPERTS * (shares * scores[part].mean((0, 1))).sum() * MICRO_BATCH / BATCH
        return self.balance * total

    def feed_forward(self, w, at, x):
        if at + "router.weight" not in w:
            return super().feed_forward(w, at, x)
        logits = linear(w, at + "router", x)
        weights, chosen = self.route(logits)
        y = torch.zeros_like(x)
        for e in range(EXPERTS):
            sample, position, choice = torch.where(chosen == e)
            weight = weights[sample, position, choice].unsqueeze(-1)
            rows = x[sample, position]
            rows = self.expert(w, at, e, weight * rows) if self.scaled_inputs else weight * self.expert(w, at, e, rows)
            y = y.index_put((sample, position), rows, accumulate=True)
        if self.shared:
            gate, up = linear(w, at + "shared_fc1", x).chunk(2, dim=-1)
            y = y + linear(w, at + "shared_fc2", self.gated(gate, up))
        if self.balance:
            self.losses.append(self.balance_loss(logits, chosen))
        if self.z:  # Zoph et al. 2022, arXiv:2202.08906, equation 5: micro-batches are equal, so the mean over all tokens
            self.losses.append(self.z * logits.logsumexp(-1).square().mean())
        return y

    def loss(self, w, tokens, labels):
        self.losses.clear()
        told = super().loss(w, tokens, labels)
        hidden = sum(self.losses)
        return told + (hidden - hidden.detach()) if self.losses else told


@dataclass
class LatentMixture(Mixture, Latent):
    pass


MIXTURES = [
    Mixture("mixtral", route=mixtral),
    Mixture("olmoe", route=olmoe, balance=0.5),
    LatentMixture(
        "deepseek_v3",
        route=deepseek_v3,
        layers=(False, True, True, True),
        shared=32,
        sigmoid=True,
        balance=0.5,
        rq=24,
        value=8,
    ),
    Mixture("gpt_oss_experts", route=gpt_oss, expert_biases=True, mlp="clamped", balance=0.5),
    Mixture("st_moe", route=mixtral, balance=0.5, z=0.25),
    Mixture("llama4_experts", route=llama4, layers=(False, True), shared=24, scaled_inputs=True),
]

#!/usr/bin/env python3
"""Trains a small transformer with every codec and prints the losses beside those of sums as they are.

    python3 bench/compression.py --text FILE [--steps 200]
    python3 bench/compression.py [--program build/release/foreshard] [--steps 300] [--curves FILE] [--pictures FOLDER] [--only TEXT]

Two layers, hidden size 32, 64 tokens, batch 16 of 16 tokens, fp32, Adam with a rate of 0.01 (SGD: 0.1, momentum 0.9), on the host. Gradients
between two replicas, activations between two tensor-parallel ranks. The text counts up through 64 letters, but two letters of
ten are drawn at random: no model can go below that entropy. Losses are means of the last 30 steps. A warm-up
is a plan without the codec whose checkpoint the plan with it goes on from; a density schedule is a plan for each share.

With --text: a Llama and a GPT of four layers (hidden size 64, 256 byte tokens, 64 of a sample, batch 8, Adam with a rate of 0.003) on the
bytes of a file, with activations between two tensor-parallel ranks in each codec; five seeds each.
"""
import argparse
import csv
import pathlib
import random
import subprocess
import tempfile

MODEL = ["--model", "gpt2-124m", "--set", "model.n_layer=2", "--set", "model.n_embd=32", "--set", "model.n_inner=64", "--set",
         "model.n_head=4", "--set", "model.vocab_size=64", "--set", "model.n_positions=16", "--set",
         "model.tie_word_embeddings=false"]
BASE = ["--cluster", "dgx-a100", "--gpus", "2", "--precision", "fp32", "--seq", "16", "--global-batch", "16"]
REPLICAS = ["--dp", "2", "--micro-batch", "8"]
TENSOR = ["--dp", "1", "--tp", "2", "--micro-batch", "16"]
SGD = ["--optimizer", "sgd", "--momentum", "0.9"]


def write_text(path, samples):
    draw = random.Random(1)
    text = bytearray(draw.randrange(64) if draw.random() < 0.2 else i % 64 for i in range(16 * samples))
    path.write_bytes(bytes(text))


TEXT_MODELS = {
    "Llama": ["--model", "llama-3-8b", "--set", "model.num_hidden_layers=4", "--set", "model.hidden_size=64", "--set",
              "model.intermediate_size=128", "--set", "model.num_attention_heads=4", "--set", "model.num_key_value_heads=4",
              "--set", "model.vocab_size=256", "--set", "model.max_position_embeddings=64"],
    "GPT": ["--model", "gpt2-124m", "--set", "model.n_layer=4", "--set", "model.n_embd=64", "--set", "model.n_head=4", "--set",
            "model.vocab_size=256", "--set", "model.n_positions=64"]}
TEXT_BASE = ["--cluster", "dgx-a100", "--gpus", "2", "--precision", "fp32", "--seq", "64", "--dp", "1", "--tp", "2",
             "--micro-batch", "8", "--global-batch", "8"]
TEXT_CODECS = [("none", []), ("segmented:8", []), ("token-topk:0.5", []), ("token-topk:0.5,segmented:8", []),
               ("token-topk:0.5,segmented:8", ["--sequence-parallel"])]


def train_on_text(program, text, steps):
    print(f"| model | activations | mean of the last 30 of {steps} steps | against as they are | least and most of five seeds |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for model, settings in TEXT_MODELS.items():
            plain = None
            for codec, also in TEXT_CODECS:
                plan, log, last = folder / "p.plan.json", folder / "loss.csv", []
                lower = [program, "lower", *settings, *TEXT_BASE, *also, "--compress-activations", codec, "--save-plan", plan]
                subprocess.run([*map(str, lower)], check=True, capture_output=True)
                for seed in range(1, 6):
                    run = [program, "run", plan, "--steps", steps, "--seed", seed, "--data", text, "--data-format", "bytes",
                           "--learning-rate", 0.003, "--loss-log", log, "--progress", "none"]
                    subprocess.run([*map(str, run)], check=True, capture_output=True)
                    with open(log) as lines:
                        losses = [float(row["loss"]) for row in csv.DictReader(lines)][-30:]
                    last.append(sum(losses) / len(losses))
                plain = plain or last
                apart = [100 * (a / b - 1) for a, b in zip(last, plain)]
                against = "" if codec == "none" else f"{100 * (sum(last) / sum(plain) - 1):+.2f} %"
                spread = "" if codec == "none" else f"{min(apart):+.1f} to {max(apart):+.1f} %"
                name = codec + (" with sequence parallelism" if also else "")
                print(f"| {model} | {name} | {sum(last) / 5:.4f} | {against} | {spread} |", flush=True)


class Trainer:
    def __init__(self, program, folder, steps):
        self.program, self.folder, self.steps, self.runs = program, folder, steps, 0
        write_text(folder / "text", 40 * steps)

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(" ".join(map(str, arguments)) + "\n" + done.stderr)

    def train(self, layout, phases, rate):
        """phases: (options, steps) one after the other; the losses of all steps."""
        self.runs += 1
        log, saved = self.folder / f"{self.runs}.csv", None
        for options, steps in phases:
            plan = self.folder / "p.plan.json"
            self.call("lower", *MODEL, *BASE, *layout, *options, "--save-plan", plan)
            checkpoint = self.folder / f"{self.runs}.{steps}.safetensors"
            again = ["--resume", saved] if saved else []
            self.call("run", plan, "--steps", steps, "--seed", 7, "--data", self.folder / "text", "--data-format", "bytes",
                      "--learning-rate", rate, "--eps", 1e-5, "--loss-log", log, "--save", checkpoint, "--progress", "none",
                      *again)
            saved = checkpoint
        with open(log) as lines:
            return [float(row["loss"]) for row in csv.DictReader(lines)]


def picture(path, named, low, high):
    """Lines of (name, losses); the axis of losses goes from low to high."""
    wide, tall, left, colours = 720, 360, 50, ["#000000", "#1f77b4", "#2ca02c", "#ff7f0e", "#d62728", "#9467bd", "#8c564b",
                              "#17becf"]
    steps = len(named[0][1])

    def at(step, loss):
        share = (min(max(loss, low), high) - low) / (high - low)
        return f"{left + (wide - left - 25) * step / steps:.1f},{tall - 30 - (tall - 50) * share:.1f}"

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" font-family="sans-serif" font-size="12">',
           f'<rect width="{wide}" height="{tall}" fill="#ffffff"/>']
    for tick in range(5):
        loss = low + (high - low) * tick / 4
        x, y = at(0, loss).split(",")
        out.append(f'<text x="8" y="{y}">{loss:.2f}</text><line x1="{left}" x2="{wide - 25}" y1="{y}" y2="{y}" stroke="#dddddd"/>')
    for step in range(0, steps + 1, steps // 6):
        out.append(f'<text x="{at(step, low).split(",")[0]}" y="{tall - 10}">{step}</text>')
    for place, (name, losses) in enumerate(named):
        means = [(step, sum(losses[step - 10:step]) / 10) for step in range(10, steps + 1, 5)]
        colour = colours[place % len(colours)]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{" ".join(at(*m) for m in means)}"/>')
        out.append(f'<text x="{wide - 330}" y="{30 + 16 * place}" fill="{colour}">{name}</text>')
    pathlib.Path(path).write_text("\n".join(out + ["</svg>"]) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/foreshard")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--curves", help="a CSV of all losses, a column for each run")
    parser.add_argument("--pictures", type=pathlib.Path,
                        help="a folder: SVGs of the runs with Adam that compress gradients, and activations; means of ten steps")
    parser.add_argument("--only", default="", help="only runs whose name contains this, and those that they are compared with")
    parser.add_argument("--text", type=pathlib.Path, help="trains on the bytes of this file instead")
    asked = parser.parse_args()
    n = asked.steps
    if asked.text:
        return train_on_text(asked.program, asked.text, n)

    def gradients(codec, steps=n):
        return [(["--compress-gradients", codec], steps)]

    def activations(codec, steps=n):
        return [(["--compress-activations", codec], steps)]

    def sgd(phases):
        return [(SGD + options, steps) for options, steps in phases]

    warm = n // 5
    third = warm // 3
    ramp = [0.25, 0.0625, 0.015625]  # the schedule of DGC's warm-up: share^(k/4) for a last share of 1/256
    token_ramp = [0.84, 0.71, 0.59]  # the same for a last share of 1/2: 0.5^(1/4), 0.5^(2/4), 0.5^(3/4)
    rows = [  # name, layout, phases, rate, the run it is compared with
        ("replicas, as they are", REPLICAS, [([], n)], 0.01, None),
        ("eight-bit", REPLICAS, gradients("eight-bit"), 0.01, 0),
        ("segmented:8", REPLICAS, gradients("segmented:8"), 0.01, 0),
        ("segmented:4", REPLICAS, gradients("segmented:4"), 0.01, 0),
        ("segmented:4x8", REPLICAS, gradients("segmented:4x8"), 0.01, 0),
        ("dgc:0.01", REPLICAS, gradients("dgc:0.01"), 0.01, 0),
        (f"dgc:0.01 after {3 * third} steps of 0.25, 0.0625, 0.0156", REPLICAS,
         [step for share in ramp for step in gradients(f"dgc:{share}", third)] + gradients("dgc:0.01", n - 3 * third), 0.01, 0),
        (f"one-bit:{warm}", REPLICAS, [([], warm)] + gradients(f"one-bit:{warm}", n - warm), 0.01, 0),
        ("SGD, as they are", REPLICAS, sgd([([], n)]), 0.1, None),
        ("SGD, dgc:0.01", REPLICAS, sgd(gradients("dgc:0.01")), 0.1, 8),
        ("SGD, one-bit", REPLICAS, sgd(gradients("one-bit")), 0.1, 8),
        ("tensor ranks, as they are", TENSOR, [([], n)], 0.01, None),
        ("activations segmented:8", TENSOR, activations("segmented:8"), 0.01, 11),
        ("activations segmented:4", TENSOR, activations("segmented:4"), 0.01, 11),
        ("token-topk:0.5", TENSOR, activations("token-topk:0.5"), 0.01, 11),
        (f"activations segmented:4 after {warm} steps as they are", TENSOR, [([], warm)] + activations("segmented:4", n - warm),
         0.01, 11),
        (f"token-topk:0.5 after {warm} steps as they are", TENSOR, [([], warm)] + activations("token-topk:0.5", n - warm), 0.01, 11),
        (f"token-topk:0.5 after {3 * third} steps of {', '.join(map(str, token_ramp))}", TENSOR,
         [step for share in token_ramp for step in activations(f"token-topk:{share}", third)] +
         activations("token-topk:0.5", n - 3 * third), 0.01, 11),
        ("token-topk:0.84", TENSOR, activations("token-topk:0.84"), 0.01, 11),
        ("token-topk:0.5,segmented:8", TENSOR, activations("token-topk:0.5,segmented:8"), 0.01, 11),
        ("ZeRO 1, segmented:4", REPLICAS + ["--zero", "1"], gradients("segmented:4"), 0.01, 0),
        ("ZeRO 2, segmented:4", REPLICAS + ["--zero", "2"], gradients("segmented:4"), 0.01, 0),
    ]
    chosen = [i for i, row in enumerate(rows) if asked.only in row[0]]
    chosen = sorted({*chosen, *(rows[i][4] for i in chosen if rows[i][4] is not None)})
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(asked.program, pathlib.Path(folder), n)
        curves = {i: trainer.train(*rows[i][1:4]) for i in chosen}
    print("| run | first step | step", n // 10, "| step", n // 3, "| last 30 steps | against as they are |\n|---|---|---|---|---|---|")
    for i, losses in curves.items():
        name, beside = rows[i][0], rows[i][4]
        last = sum(losses[-30:]) / 30
        against = "" if beside is None else f"{100 * (last / (sum(curves[beside][-30:]) / 30) - 1):+.2f} %"
        print(f"| {name} | {losses[0]:.3f} | {losses[n // 10 - 1]:.3f} | {losses[n // 3 - 1]:.3f} | {last:.4f} | {against} |")
    if asked.pictures:
        for file, shown in (("compression.svg", (0, 3, 5, 6, 7)), ("compression-activations.svg", (11, 12, 13, 15, 14, 16, 17))):
            picture(asked.pictures / file, [(rows[i][0], curves[i]) for i in shown], 1.6, 3.2)
    if asked.curves:
        with open(asked.curves, "w", newline="") as out:
            table = csv.writer(out)
            table.writerow(["step"] + [rows[i][0] for i in curves])
            for step in range(n):
                table.writerow([step + 1] + [f"{losses[step]:.4f}" for losses in curves.values()])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Predicted against measured: 12 strategies simulated with a machine profile, then executed in emulated time on this machine.

    foreshard calibrate --device host
    bench/overlay.py [--program build/release/foreshard] [--profile host.profile.json] [--cluster this-host.json] [--rounds 1]

Prints one row per strategy and the median error; exit code 1 when it is above 10 % or a bubble is off by more than 3 points.
None of the models or batches here is one that `calibrate` runs (cli/parts/calibrate_probes.cpp).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

GPT = {"model_type": "gpt2", "n_embd": 256, "n_layer": 4, "n_head": 8, "n_positions": 128, "vocab_size": 2048}
LLAMA = {"model_type": "llama", "hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 8,
         "num_attention_heads": 6, "num_key_value_heads": 6, "vocab_size": 1024, "max_position_embeddings": 96,
         "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False}

ROWS = [
    (GPT, "--dp 1 --global-batch 4 --micro-batch 4 --precision fp32"),
    (GPT, "--dp 1 --pp 2 --global-batch 8 --micro-batch 2 --precision fp32"),
    (GPT, "--dp 1 --pp 4 --global-batch 8 --micro-batch 1 --precision fp32"),
    (GPT, "--dp 1 --pp 4 --global-batch 16 --micro-batch 2 --schedule gpipe --precision fp32"),
    (GPT, "--dp 1 --pp 2 --virtual-stages 2 --global-batch 8 --micro-batch 1 --precision fp32"),
    (GPT, "--dp 2 --tp 2 --global-batch 8 --micro-batch 2 --precision fp32"),
    (GPT, "--dp 2 --tp 2 --pp 2 --global-batch 8 --micro-batch 1 --sequence-parallel --precision fp32"),
    (GPT, "--dp 4 --global-batch 8 --micro-batch 2 --zero 1 --precision bf16"),
    (GPT, "--dp 4 --global-batch 8 --micro-batch 2 --zero 3 --precision fp32"),
    (LLAMA, "--dp 1 --pp 4 --global-batch 8 --micro-batch 1 --recompute full --precision fp32"),
    (LLAMA, "--dp 2 --pp 4 --global-batch 16 --micro-batch 2 --zero 1 --precision bf16"),
    (LLAMA, "--dp 1 --tp 2 --pp 2 --global-batch 8 --micro-batch 2 --precision bf16"),
]


def call(program, words):
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("%s %s: exit code %d\n%s" % (program, " ".join(words), done.returncode, done.stderr))
    return done.stdout


def row(arguments, folder, model, options, number):
    name = lambda suffix: os.path.join(folder, "%d.%s" % (number, suffix))
    with open(name("json"), "w") as file:
        json.dump(model, file)
    call(arguments.program, ["simulate", "--model", name("json"), "--cluster", arguments.cluster, "--profile",
                             arguments.profile, "--granularity", "op", "--folding", "none", *options.split(),
                             "--save-plan", name("plan.json"), "--save-result", name("simulated.result")])
    call(arguments.program, ["run", name("plan.json"), "--time", "emulated", "--profile", arguments.profile, "--steps",
                             str(arguments.steps), "--save-result", name("measured.result")])
    return json.loads(call(arguments.program, ["compare", name("simulated.result"), name("measured.result"), "--json"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/foreshard")
    parser.add_argument("--profile", default="host.profile.json")
    parser.add_argument("--cluster", default="this-host.json")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--kinds", action="store_true", help="also the errors per kind of instruction, all rows together")
    arguments = parser.parse_args()
    errors, bubbles, kinds = [], [], {}
    print("%-5s  %-76s %10s %10s %7s %8s %8s %7s" % ("model", "strategy", "predicted", "measured", "error", "bubble",
                                                     "measured", "points"))
    with tempfile.TemporaryDirectory() as folder:
        for number, (model, options) in enumerate(ROWS):
            got = row(arguments, folder, model, options, number)
            time, bubble = got["iteration_time"], got["bubble"]
            errors.append(abs(time["signed_error"]))
            bubbles.append(abs(bubble["signed_error"]))
            for kind in got["op_kinds"]:
                sums = kinds.setdefault(kind["kind"], [0.0, 0.0])
                sums[0] += kind["predicted"]
                sums[1] += kind["measured"]
            print("%-5s  %-76s %7.2f ms %7.2f ms %+6.1f%% %7.1f%% %7.1f%% %+6.1f" % (
                "gpt" if model is GPT else "llama", options.replace("--", ""), time["predicted"] * 1e3,
                time["measured"] * 1e3, time["signed_error"] * 100, bubble["predicted"] * 100, bubble["measured"] * 100,
                bubble["signed_error"] * 100), flush=True)
    if arguments.kinds:
        for kind, (predicted, measured) in sorted(kinds.items(), key=lambda item: -item[1][1]):
            error = "%+6.1f%%" % (100 * (predicted / measured - 1)) if measured else "-"
            print("  %-28s %9.2f ms %9.2f ms %s" % (kind, predicted * 1e3, measured * 1e3, error))
    median, worst = statistics.median(errors), max(bubbles)
    print("iteration time: median error %.1f %%, largest %.1f %%; bubble: largest difference %.1f points, median %.1f" % (
        median * 100, max(errors) * 100, worst * 100, statistics.median(bubbles) * 100))
    return 0 if median <= 0.10 and worst <= 0.03 else 1


if __name__ == "__main__":
    sys.exit(main())

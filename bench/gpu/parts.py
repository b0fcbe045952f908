#!/usr/bin/env python3
"""One part of run.sh: `parts.py PART SCRATCH` runs the program (PROGRAM) and prints what it found as a line of JSON, once more after each step, so that
what a time limit cuts off is not lost. Logs go to SCRATCH. Standard library only."""
import array
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading

here = pathlib.Path(__file__).resolve().parent
program, gpu, cluster = os.environ["PROGRAM"], os.environ["GPU_NAME"], os.environ["CLUSTER"]
full = os.environ["SIZE"] == "full"

# layers, hidden, heads, sequence, vocabulary, micro-batch, micro-batches
MODELS = {
    "1b": (24, 1792, 14, 2048, 50304, 4, 2) if full else (1, 32, 2, 16, 64, 2, 2),
    "124m": (12, 768, 12, 1024, 50304, 8, 2) if full else (1, 32, 2, 16, 64, 2, 2),
    "small": (4, 256, 4, 256, 4096, 4, 2) if full else (1, 32, 2, 16, 64, 2, 2),
    "split": (4, 1024, 8, 1024, 32768, 2, 8) if full else (4, 32, 4, 8, 64, 1, 8),
}
STRATEGIES = ["--dp 2", "--tp 2", "--pp 2", "--dp 4 --zero 1", "--dp 2 --tp 2 --pp 2", "--dp 8 --zero 3", "--dp 2 --tp 4 --sequence-parallel",
              "--pp 2 --virtual-stages 2 --schedule interleaved-1f1b"]


class Failed(Exception):
    pass


def tell(data):
    print(json.dumps(data), flush=True)


def run(scratch, name, words):
    """The standard output of a program; both outputs are in NAME.log."""
    with open(scratch / (name + ".log"), "w") as log:
        log.write("$ " + " ".join(words) + "\n")
        log.flush()
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=log, text=True)
        log.write(done.stdout)
    if done.returncode:
        last = [line for line in (scratch / (name + ".log")).read_text().splitlines() if line.strip()][-1]
        raise Failed(f"{name}: exit code {done.returncode}: {last[:300]}")
    return done.stdout


def foreshard(scratch, name, *words):
    return run(scratch, name, [program, *words])


def json_of(text):
    return json.loads(text[text.index("{"):])


def gpt(model):
    layers, hidden, heads, sequence, vocabulary, *_ = MODELS[model]
    return (f"--model gpt2-124m --set model.n_layer={layers} --set model.n_embd={hidden} --set model.n_head={heads} "
            f"--set model.n_positions={sequence} --set model.vocab_size={vocabulary} --seq {sequence} --cluster {cluster}").split()


def one_gpu(model, precision, *more):
    micro, count = MODELS[model][5:]
    attention = "flash" if precision == "bf16" else "unfused"
    return [*gpt(model), "--gpus", "1", "--precision", precision, "--attention", attention, "--micro-batch", str(micro), "--global-batch",
            str(micro * count), *more]


def plan(scratch, name, words):
    file = str(scratch / (name + ".plan.json"))
    foreshard(scratch, name + ".lower", "lower", *words, "--save-plan", file)
    return file


def trained(scratch, name, file, *words):
    text = foreshard(scratch, name, "run", file, "--json", "--progress", "none", *words)
    done = json_of(text)
    done["losses"] = [step["loss"] for step in done.pop("steps")]
    return {key: done[key] for key in ("losses", "iteration_time_s", "arena_bytes", "workspace_bytes", "peak_memory_bytes")}


def tokens(scratch, model):
    """A file of 16-bit tokens whose next token is, three times in four, a function of the last: so a loss has something to learn."""
    file = scratch / (model + ".tokens.bin")
    if not file.exists():
        vocabulary, draw = MODELS[model][4], random.Random(1)
        numbers, last = array.array("H"), 0
        for _ in range(1 << 20 if full else 1 << 12):
            last = (last * 7 + 3) % vocabulary if draw.random() < 0.75 else int(vocabulary * draw.random() ** 3)
            numbers.append(last)
        file.write_bytes(numbers.tobytes())
    return str(file)


class Watch:
    """The most memory of the GPU in use, by nvidia-smi; None where there is none."""

    def __enter__(self):
        self.most, self.over = None, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        if shutil.which("nvidia-smi"):
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()

    def look(self):
        while not self.over.wait(0.3):
            done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
            try:
                self.most = max(self.most or 0, int(done.stdout.split()[0]) << 20)
            except (ValueError, IndexError):
                return


def peaks(scratch):
    found = json_of(foreshard(scratch, "cluster", "show", "cluster", cluster, "--json"))["gpus"][0]
    return {key: found[key] for key in ("bf16", "fp32", "memory", "memory_bandwidth")}


def doctor(scratch, name):
    """What doctor found, by topic; of several NCCL libraries, the one that is used, else the line that says that there is none."""
    lines = json_of(foreshard(scratch, name, "doctor", "--device", "cuda", "--json"))["findings"]
    return {line["topic"]: line["found"] for line in sorted(lines, key=lambda line: line["health"] == "good")}


def machine(scratch):
    file = here.parent.parent / "commit"
    found = {"gpu": gpu, "cluster": cluster, "peaks": peaks(scratch), "size": "full" if full else "tiny",
             "commit": file.read_text().strip() if file.exists() else "a checkout"}
    tell(found)  # what the page needs; a driver that is broken may not answer
    if shutil.which("nvidia-smi"):
        found["nvidia_smi"] = run(scratch, "nvidia-smi", ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]).strip()
    tell(found)
    try:
        told = doctor(scratch, "doctor")
        found["doctor"] = {topic: told[topic] for topic in ("GPUs", "NCCL", "cuDNN") if topic in told}
    except Failed as problem:
        found["doctor"] = {"GPUs": str(problem)}
    tell(found)


def selftest(scratch, name="selftest", prefix=(), options=()):
    """What was compared with the host."""
    words = [*prefix, program, "selftest", "--device", "cuda", "--all", "--json", "--progress", "none", *([] if full else ["--quick"]), *options]
    try:
        told = run(scratch, name, words)
    except Failed:
        told = (scratch / (name + ".log")).read_text()
        if '"kernels"' not in told:
            raise
    lines = json.JSONDecoder().raw_decode(told[told.index("{"):])[0]["kernels"]
    wrong = [line for line in lines if not line["right"]]
    return {"compared": len(lines), "wrong": [f'{line["name"]}: {line["verdict"]}' for line in wrong],
            "nccl": sorted({line["name"].split(":")[0] for line in lines if line["name"].startswith("NCCL ")})}


def train(scratch):
    """The 1B decoder in bf16, and the same in PyTorch: the same initial weights, the same tokens."""
    layers, hidden, heads, sequence, vocabulary, micro, count = MODELS["1b"]
    steps = 12 if full else 3
    data = ["--data", tokens(scratch, "1b"), "--data-format", "u16"]
    file = plan(scratch, "train", one_gpu("1b", "bf16"))
    told = json_of(foreshard(scratch, "train.light", "simulate", "--plan", file, "--clock", "light", "--json"))
    map_flops = 12 * layers * hidden * sequence * sequence * micro * count  # of attention, which a causal mask halves
    found = {"model": dict(zip(("layers", "hidden", "heads", "sequence", "vocabulary", "micro_batch", "microbatches"), MODELS["1b"])),
             "steps": steps, "tokens_per_step": micro * count * sequence, "flops": told["flops"]["model"],
             "flops_causal": told["flops"]["model"] - map_flops // 2, "predicted_s": told["iteration_time_s"],
             "predicted_memory_bytes": told["peak_memory_bytes"]["with_framework"], "parameters": told["parameters"]}
    with Watch() as watch:
        found["foreshard"] = trained(scratch, "train.run", file, "--device", "cuda", "--steps", str(steps), *data)
    found["foreshard"]["device_memory_bytes"] = watch.most
    tell(found)
    # As PyTorch's fused attention: its backward adds up in any order, too.
    found["any_order"] = trained(scratch, "train.any_order", file, "--device", "cuda", "--any-order", "--steps", str(steps), *data)
    tell(found)
    # A step with a learning rate of 0 leaves the weights as they were drawn.
    weights = str(scratch / "weights.safetensors")
    first = plan(scratch, "weights", [*gpt("1b"), *"--gpus 1 --precision fp32 --attention unfused --optimizer sgd --micro-batch 1 --global-batch 1".split()])
    foreshard(scratch, "weights.run", "run", first, "--device", "cuda", "--steps", "1", "--learning-rate", "0", "--save", weights)
    found["pytorch"] = torch(scratch, "train.torch", "torch_gpt.py", "--layers", layers, "--hidden", hidden, "--heads", heads, "--sequence", sequence,
                             "--vocabulary", vocabulary, "--micro-batch", micro, "--microbatches", count, "--steps", steps, "--weights", weights,
                             "--tokens", data[1])
    tell(found)


def torch(scratch, name, script, *words):
    if subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True).returncode:
        return {"missing": "PyTorch with CUDA cannot be imported here"}
    try:
        return json_of(run(scratch, name, [sys.executable, str(here / script), *map(str, words)]).splitlines()[-1])
    except Failed as problem:
        return {"missing": str(problem)}


def losses(scratch):
    """fp32 on the GPU and on the host; bf16 beside them."""
    steps, found = ("8" if full else "2"), {}
    for name, precision, device in (("cuda", "fp32", "cuda"), ("host", "fp32", "host"), ("cuda bf16", "bf16", "cuda")):
        file = plan(scratch, "losses." + precision, one_gpu("small", precision))
        found[name] = trained(scratch, "losses." + name.replace(" ", "."), file, "--device", device, "--steps", steps, "--data", tokens(scratch, "small"),
                              "--data-format", "u16")["losses"]
        tell(found)


def calibrate(scratch):
    small = [] if full else ["--largest-product", "64", "--largest-hidden", "64", "--steps", "2"]
    file = str(scratch / "cuda.profile.json")
    text = foreshard(scratch, "calibrate.run", "calibrate", "--device", "cuda", "--precision", "bf16", "--name", gpu, "--save-profile", file, *small)
    text = re.sub(r"\n*written: .*\n", "\n", text)  # a path that is gone
    tell({"text": text, "profile": "cuda.profile.json.gz"})


def predict(scratch):
    """Strategies predicted on the light clock by what calibrate measured, and then measured: computes one at a time on the GPU, put together along the
    plan with transfers as calibrate measured them."""
    profile, found = str(scratch / "cuda.profile.json"), []
    micro, count = MODELS["split"][5:]
    for index, strategy in enumerate(STRATEGIES):
        row, name = {"strategy": strategy}, f"predict.{index}"
        found.append(row)
        degrees = dict(re.findall(r"--(dp|tp|pp) (\d+)", strategy))
        ranks = 1
        for degree in degrees.values():
            ranks *= int(degree)
        words = [*gpt("split"), *strategy.split(), "--gpus", str(ranks), "--precision", "bf16", "--attention", "flash", "--micro-batch", str(micro),
                 "--global-batch", str(micro * count)]
        try:
            file = str(scratch / (name + ".plan.json"))
            told = json_of(foreshard(scratch, name + ".light", "simulate", *words, "--profile", profile, "--clock", "light", "--granularity", "op", "--json",
                                     "--save-plan", file))
            row["predicted_s"] = told["iteration_time_s"]
            done = trained(scratch, name, file, "--device", "cuda", "--time", "emulated", "--profile", profile, "--steps", "4" if full else "2")
            row["measured_s"], row["losses"] = done["iteration_time_s"], done["losses"]
        except Failed as problem:
            row["failed"] = str(problem)
        tell(found)
    # A run joins instructions to one product, calibrate measures each by itself: once more without joining.
    for index, row in enumerate(found if full else found[:1]):
        if "measured_s" in row:
            row["apart_s"] = trained(scratch, f"predict.{index}.apart", str(scratch / f"predict.{index}.plan.json"), "--device", "cuda", "--no-epilogues", "--time",
                                     "emulated", "--profile", profile, "--steps", "4" if full else "2")["iteration_time_s"]
            tell(found)


def sanitizer(scratch):
    if not shutil.which("compute-sanitizer"):
        return tell({"missing": "no compute-sanitizer here"})
    found = {}
    for tool in ("memcheck", "racecheck"):
        found[tool] = selftest(scratch, "sanitizer." + tool, ["compute-sanitizer", "--tool", tool], ["--quick"] if full else [])
        said = (scratch / f"sanitizer.{tool}.log").read_text()
        found[tool]["summary"] = [line.strip("= ") for line in said.splitlines() if "SUMMARY" in line]
        tell(found)


def kernels(scratch):
    """What calibrate measured of each kind of instruction at its largest size of at most a gigabyte, and PyTorch's time for the same."""
    profile = json.loads((scratch / "cuda.profile.json").read_text())
    rows = []
    for kind in profile["ops"]:
        fitting = [sample for sample in kind["samples"] if sample["traffic"] <= 1 << 30]
        if kind["phase"] == "recompute" or kind.get("joined") or not fitting or kind["dtype"] not in ("bf16", "fp32"):
            continue
        sample = max(fitting, key=lambda one: one["traffic"])
        rows.append({"op": kind["op"], "phase": kind["phase"], "dtype": kind["dtype"], "variant": kind["variant"], "dims": sample["dims"],
                     "traffic": sample["traffic"], "seconds": sample["seconds"]})
    tell({"rows": rows})
    file = scratch / "kernels.json"
    file.write_text(json.dumps(rows))
    tell({"rows": rows, "pytorch": torch(scratch, "kernels.torch", "torch_kernels.py", file)})


def graphs(scratch):
    steps, found = ("20" if full else "4"), {}
    file = plan(scratch, "graphs", one_gpu("124m", "bf16"))
    for name, more in (("without", []), ("with", ["--graphs"])):
        done = trained(scratch, "graphs." + name, file, "--device", "cuda", "--steps", steps, *more)
        found[name] = {"iteration_time_s": done["iteration_time_s"], "losses": done["losses"]}
        tell(found)


def nccl(scratch):
    """A rank per GPU; two ranks on one where NCCL lets them: from 2.30.3 on."""
    found = {"library": doctor(scratch, "nccl.doctor").get("NCCL", "none")}
    if found["library"].startswith("none"):
        found["a rank per GPU"] = found["two ranks on one GPU"] = {"missing": "there is no NCCL here"}
        return tell(found)
    tell(found)
    os.environ.setdefault("NCCL_DEBUG", "WARN")
    found["a rank per GPU"] = selftest(scratch, "nccl.selftest", options=["--nccl", "--only", "NCCL "])
    tell(found)
    said = re.search(r"NCCL (\d+)\.(\d+)\.(\d+)", " ".join(found["a rank per GPU"]["nccl"]))
    version = tuple(map(int, said.groups())) if said else (0, 0, 0)
    if version >= (2, 30, 3):
        os.environ.update(NCCL_MULTI_RANK_GPU_ENABLE="1", NCCL_MAX_CTAS="4")
        found["two ranks on one GPU"] = selftest(scratch, "nccl.shared", options=["--nccl", "--only", "NCCL "])
    else:
        found["two ranks on one GPU"] = {"missing": f"NCCL {'.'.join(map(str, version))}; 2.30.3 or later lets two ranks share a GPU"}
    tell(found)


def main():
    part, scratch = sys.argv[1], pathlib.Path(sys.argv[2])
    parts = {"machine": machine, "selftest": lambda folder: tell(selftest(folder)), "train": train, "losses": losses, "calibrate": calibrate,
             "predict": predict, "sanitizer": sanitizer, "kernels": kernels, "graphs": graphs, "nccl": nccl}
    if part not in parts:
        sys.exit(f"no part {part}: one of {', '.join(parts)}")
    try:
        parts[part](scratch)
    except Failed as problem:
        sys.exit(str(problem))
    except FileNotFoundError as problem:
        sys.exit(f"{problem.filename} is not there: an earlier part makes it")


if __name__ == "__main__":
    main()

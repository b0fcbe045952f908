#!/usr/bin/env python3
"""Gives the programs files with something changed, and looks at what they make of them.

    tests/fuzz/changed_files.py PROGRAM [--count N] [--seed N] [--kinds model,plan,...] [--only CASE] [--out FOLDER] [--gui PROGRAM]

Files of every kind that is read: made by the program itself or shipped, then changed in one place or a few (changes.py). Demanded of each:
it ends within the limits, with exit code 0 to 3; no signal, no assertion, no "internal error"; a refused file has one line that names it
and nothing on standard output; what is printed are numbers; no file and no process is left behind. What breaks is saved in FOLDER, one
folder for each message: the file, the command, the output. The same seed gives the same files; --only repeats one case.
"""
import argparse
import collections
import json
import math
import multiprocessing
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import changes

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent
TINY = ("--model gpt2-124m --set model.n_layer=4 --set model.n_embd=64 --set model.n_head=4 --set model.vocab_size=128 --set model.n_positions=32 "
        "--cluster dgx-a100 --precision fp32 --dropout 0 --clip-norm 0")
EXPERTS = ("--model mixtral-8x7b --set model.num_hidden_layers=2 --set model.hidden_size=64 --set model.num_attention_heads=4 "
           "--set model.num_key_value_heads=2 --set model.intermediate_size=64 --set model.vocab_size=128 --seq 32 --cluster dgx-a100 --precision fp32 "
           "--dropout 0 --clip-norm 0")
STRATEGIES = {
    "plain": TINY + " --gpus 1 --global-batch 2",
    "pipeline": TINY + " --gpus 8 --tp 2 --pp 2 --dp 2 --zero 1 --global-batch 8",
    "sharded": TINY + " --gpus 2 --zero 3 --recompute full --global-batch 4",
    "chunks": TINY + " --gpus 2 --pp 2 --schedule interleaved-1f1b --virtual-stages 2 --global-batch 4",
    "bubbles": TINY + " --gpus 2 --pp 2 --schedule zb-h1 --global-batch 4",
    "context": TINY + " --gpus 2 --cp 2 --context ring --global-batch 2",
    "offload": TINY + " --gpus 2 --zero 2 --offload-optimizer host --offload-gradients host --global-batch 4",
    "coded": TINY + " --gpus 2 --compress-gradients eight-bit --global-batch 4",
    "stages": TINY + " --gpus 3 --stages 2:2x1,2:1x1 --global-batch 4",
    "servers": TINY + " --dp 2 --asynchronous --global-batch 4",
    "experts": EXPERTS + " --gpus 4 --dp 4 --ep 2 --expert-capacity 1.25 --global-batch 4",
}
MODELS = """gpt2-124m llama-3-8b qwen3-0.6b qwen3-30b-a3b deepseek-v2-lite gpt-oss-20b gemma-2-2b gemma-3-1b mixtral-8x7b bert-large phi-3-mini-4k
granite-3.1-1b-a400m llama-4-scout minimax-m2 glm-4.5-air olmo-2-7b kimi-k2""".split()
TABLES = "nemo_h100 korthikanti2022 torchtitan megatron_sc21_table1 llm_foundry bert_dle zero_bubble moe_model_zoo layer_times megatron_golden".split()
SMALL_JOB = "simulate --model gpt2-124m --seq 256 --global-batch 64 --ignore-memory --cluster"
DATA_JOB = "simulate --model llama-3-8b --seq 1024 --global-batch 8 --tp 2 --ignore-memory"

# kind: how files are changed, how often the kind is drawn, and what reads them. FILE is the changed one, BASES the folder of the others.
KINDS = {
    "model": ("json", 4, ["show model FILE", "simulate --model FILE --cluster dgx-h100 --seq 256 --tp 2 --sequence-parallel --ignore-memory --json",
                          "simulate --model FILE --cluster dgx-h100 --seq 256 --pp 2 --ignore-memory",
                          "export BASES/plain.strategy.json --to megatron --model FILE --cluster dgx-h100 --set strategy.seq=256"]),
    "layers": ("json", 2, ["show model FILE", "simulate --model FILE --cluster dgx-a100 --global-batch 64 --json",
                           "simulate --model FILE --cluster dgx-a100 --pp 2 --global-batch 64 --offload-activations vdnn --ignore-memory"]),
    "cluster": ("json", 4, ["show cluster FILE", SMALL_JOB + " FILE", SMALL_JOB + " FILE --json --zero 3",
                            SMALL_JOB.replace("124m", "355m") + " FILE --zero 1 --offload-optimizer host --recompute full"]),
    "strategy": ("json", 3, [f"simulate {TINY} --strategy FILE --json", f"lower {TINY} --strategy FILE", f"simulate {EXPERTS} --strategy FILE",
                             *(f"export FILE --to {to} --model llama-3-8b --cluster dgx-h100" for to in ("megatron", "torchtitan", "deepspeed"))]),
    "plan": ("json", 8, ["check-plan FILE", "check-plan FILE --cluster dgx-a100 --json", "show plan FILE", "simulate --plan FILE --json",
                         "run FILE --steps 1 --progress none --launcher none", "run FILE --steps 1 --time emulated --progress none --launcher none"]),
    "result": ("json", 4, ["compare FILE BASES/measured.result", "compare BASES/simulated.result FILE --json", "compare FILE FILE"]),
    "profile": ("json", 2, ["simulate --model gpt2-124m --set model.n_layer=2 --cluster BASES/host.json --profile FILE --gpus 2 --precision fp32 "
                            "--seq 64 --global-batch 2 --json",
                            "run BASES/pipeline.plan.json --steps 1 --time emulated --profile FILE --progress none --launcher none"]),
    "learned": ("json", 1, ["simulate --model llama-3-8b --cluster dgx-h100 --framework nemo --precision fp8 --seq 4096 --global-batch 8 "
                            "--ignore-memory --profile FILE --json"]),
    "table": ("table", 6, ["validate FILE", "validate FILE --json --per-row", "calibrate --runs FILE --save-profile learned.profile.json"]),
    "framework": ("json", 4, [DATA_JOB + " --cluster dgx-h100 --framework NAME --json", "show policies " + DATA_JOB[9:].replace(" --ignore-memory", "") + " --cluster dgx-a100 --framework NAME",
                              "list frameworks"]),
    "accuracy": ("json", 3, [DATA_JOB + " --cluster hgx-h200 --framework megatron --json", DATA_JOB + " --cluster gb200-nvl72 --gpus 8"]),
    "gpu": ("json", 2, ["show cluster dgx-h100", DATA_JOB + " --cluster dgx-h100 --framework torchtitan --json"]),
    "checkpoint": ("checkpoint", 3, ["run BASES/pipeline.plan.json --resume FILE --steps 1 --progress none --launcher none"]),
    "data": ("bytes", 1, ["run BASES/plain.plan.json --data FILE --steps 1 --progress none --launcher none",
                          "run BASES/plain.plan.json --data FILE --data-format u32 --steps 1 --progress none --launcher none"]),
    "losses": ("table", 1, ["run BASES/pipeline.plan.json --resume BASES/kept.checkpoint --loss-log FILE --steps 1 --progress none --launcher none"]),
    "schedule": ("text", 2, ["show schedule file:FILE --pp 2 --micro-batches 4", f"simulate {TINY} --gpus 2 --pp 2 --global-batch 4 --schedule file:FILE"]),
    "loads": ("json", 1, [f"simulate {EXPERTS} --gpus 4 --dp 4 --ep 2 --global-batch 4 --expert-load file:FILE --json"]),
    "workspace": ("json", 3, ["GUI --export picture.json FILE"]),
}
SUFFIX = {"plan": ".plan.json", "result": ".result", "strategy": ".strategy.json", "workspace": ".workspace.json", "table": ".csv", "losses": ".csv",
          "schedule": ".csv", "data": ".txt", "checkpoint": ".safetensors"}
IN_DATA = {"framework": "frameworks", "gpu": "topologies/gpus"}  # read from the folder of shipped data


def make_bases(program, folder, kinds):
    """Files of every kind, by name; `folder` keeps those that commands read beside the changed one."""
    bases = collections.defaultdict(dict)
    call = lambda words: subprocess.run([program, *shlex.split(words)], cwd=folder, check=True, capture_output=True, timeout=300)
    for name, words in STRATEGIES.items():
        call(f"simulate {words} --ignore-memory --save-plan {name}.plan.json --save-strategy {name}.strategy.json")
    call("simulate --plan pipeline.plan.json --save-result simulated.result")
    call("simulate --plan plain.plan.json --granularity op --save-result one.result")
    call("run pipeline.plan.json --steps 2 --save kept.checkpoint --save-result measured.result --loss-log losses.csv --launcher none")
    call("show schedule 1f1b --pp 2 --micro-batches 4 --save-schedule lists.csv")
    read = lambda path: pathlib.Path(path).read_bytes()
    for path in sorted(pathlib.Path(folder).iterdir()):
        for kind in ("plan", "strategy"):
            if path.name.endswith(f".{kind}.json"):
                bases[kind][path.name] = read(path)
        if path.suffix == ".result":
            bases["result"][path.name] = read(path)
    bases["checkpoint"] = {"kept": read(f"{folder}/kept.checkpoint")}
    bases["losses"] = {"losses": read(f"{folder}/losses.csv")}
    bases["schedule"] = {"lists": read(f"{folder}/lists.csv"), "words": b"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3\n"}
    bases["data"] = {"text": b"It was the best of times, it was the worst of times. " * 40}
    bases["loads"] = {"loads": b'{"format": "foreshard-expert-loads", "layers": [[5, 3, 2, 6, 4, 4, 4, 4], [4, 4, 4, 4, 1, 1, 9, 5]]}'}
    for name in MODELS:
        bases["model"][name] = read(ROOT / "models" / f"{name}.json")
    for name in ("vgg-16", "resnet-50", "toy-matmul"):
        bases["layers"][name] = read(ROOT / "models" / f"{name}.json")
    for path in [*sorted((ROOT / "topologies").glob("*.json")), *(HERE / "bases").glob("*.cluster.json"), ROOT / "examples" / "quote-h100-pcie.json"]:
        bases["cluster"][path.stem] = read(path)
    bases["gpu"]["h100-80"] = read(ROOT / "topologies/gpus/h100-80.json")
    for path in sorted((ROOT / "frameworks").glob("*.json")):
        bases["framework"][path.stem] = read(path)
    for name in ("constants.json", "residuals.json", "kernel_rates/h200.json", "kernel_rates/gb200.json", "attention_rates/h200.json", "attention_rates/gb200.json"):
        bases["accuracy"][name] = read(ROOT / "accuracy" / name)
    bases["profile"]["host"] = read(HERE / "bases" / "host.profile.json")
    bases["learned"]["runs"] = read(HERE / "bases" / "learned.profile.json")
    shutil.copy(HERE / "bases" / "host.cluster.json", f"{folder}/host.json")
    for name in TABLES:
        lines = read(ROOT / "data" / "measured" / f"{name}.csv").split(b"\n")
        for first in (1, len(lines) // 2):  # the title and two rows
            bases["table"][f"{name}-{first}"] = b"\n".join([lines[0], *lines[first : first + 2]]).rstrip() + b"\n"
    bases["workspace"] = {"job": read(HERE / "bases" / "job.workspace.json")}
    return {kind: list(bases[kind].items()) for kind in kinds}


def changed(kind, how, files, rng):
    """The name of the base, the changed file and what was changed."""
    name, data = rng.choice(files)
    count = rng.choice([1] * 7 + [2, 2, 4])
    if rng.random() < (0.2 if how != "bytes" else 1):
        return name, *changes.changed_bytes(data, rng, count, [other for _, other in files])
    if how == "json":
        return name, *changes.changed_json(data.decode(), rng, count)
    if how == "table":
        return name, *changes.changed_table(data.decode(), rng, count)
    if how == "checkpoint":
        return name, *changes.changed_checkpoint(data, rng, count)
    words = re.findall(r"[\s,;&()]+|[^\s,;&()]+", data.decode())  # text: words and what separates them
    for _ in range(count):
        place = rng.randrange(len(words))
        words[place] = rng.choice([rng.choice(words), "", "0F0", "9F9", "1B99999999999", "0F-1", "-1F0", "0X0", words[place] * 2, " ", "\n", "," * 50, "#"])
    return name, "".join(words).encode("utf-8", "surrogatepass"), f"{count} words"


def kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def remains(group):
    """Whether a process of the group goes on, ten seconds after its first one ended (a simulation's may take its time to exit); then it is killed."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    alive = False
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        alive = alive or (int(of) == group and state not in "ZX")  # the dead wait for the first process of the machine to look at them
    kill(group)
    return alive


class Worker:
    """One folder in which cases run, one after another."""

    def __init__(self, options, bases, bases_folder):
        self.options, self.bases, self.bases_folder = options, bases, bases_folder
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="case-", dir=bases_folder))
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="data-", dir=bases_folder))
        self.runtime = tempfile.mkdtemp(prefix="runtime-", dir=bases_folder)  # Qt's, of the user alone
        for name in ("models", "topologies", "frameworks", "accuracy"):
            shutil.copytree(ROOT / name, self.data / name)
        self.drawn = [kind for kind in options.kinds for _ in range(KINDS[kind][1])]

    def case(self, number):
        """What is wrong with case `number`, or None."""
        rng = random.Random(f"{self.options.seed} {number}")
        kind = rng.choice(self.drawn)
        how, _, commands = KINDS[kind]
        command = rng.choice(commands)
        base, data, change = changed(kind, how, self.bases[kind], rng)
        name = "case" + SUFFIX.get(kind, ".json")
        place, restored = self.folder / name, None
        if kind in IN_DATA or kind == "accuracy":
            place = self.data / IN_DATA[kind] / f"{base}.json" if kind in IN_DATA else self.data / "accuracy" / base
            restored, name = place.read_bytes(), place.name
            command = command.replace("NAME", base)
        place.write_bytes(data)
        words = [word.replace("FILE", name).replace("BASES", str(self.bases_folder)) for word in shlex.split(command)]
        said = self.run(words)
        wrong = self.judge(kind, words, name, data, *said)
        if restored is not None:
            place.write_bytes(restored)
        left = sorted(path.name for path in self.folder.iterdir())
        expected = [name] if restored is None else []
        written = {each for each in ("learned.profile.json", "picture.json") if said[0] == 0 or f"written: {each}" in said[1]}
        if not wrong and [each for each in left if each not in written] != expected:
            wrong = ("left behind: " + " ".join(left),)
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not wrong:
            return kind, said[0], None
        return kind, said[0], {"number": number, "kind": kind, "what": wrong[0], "command": shlex.join(words), "base": base, "change": change,
                               "changes": change.count(",") + 1, "name": name, "data": data, "rc": said[0], "out": said[1], "err": said[2]}

    def run(self, words):
        options = self.options
        program = options.gui if words[0] == "GUI" else options.program
        limit = f"ulimit -c 0; ulimit -t {options.cpu}" + (f"; ulimit -v {options.memory << 20}" if options.memory else "")
        environment = os.environ | {"TMPDIR": str(self.folder), "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "QT_QPA_PLATFORM": "offscreen",
                                    "FORESHARD_DATA": str(self.data), "HOME": str(self.folder), "XDG_RUNTIME_DIR": self.runtime}
        child = subprocess.Popen(["sh", "-c", limit + '; exec "$@"', "sh", program, *(words[1:] if words[0] == "GUI" else words)], cwd=self.folder,
                                 env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = child.communicate(timeout=options.cpu * 6)
            rc = child.returncode
        except subprocess.TimeoutExpired:
            kill(child.pid)
            out, err = child.communicate()
            rc = 1000  # did not end
        if remains(child.pid) and rc in (0, 1, 2, 3):
            rc = 1001  # left a process
        return rc, out.decode(errors="replace"), err.decode(errors="replace")

    def judge(self, kind, words, name, data, rc, out, err):
        """A tuple with what is wrong, or ()."""
        lines = [line for line in err.splitlines() if line.strip()]
        bugs = ("ssert", "terminate", "internal error", "ERROR: ", "runtime error")
        first = next((line for line in lines if any(bug in line for bug in bugs)), "")
        if rc == 1000 or rc in (-signal.SIGXCPU, -signal.SIGKILL):
            deep = re.search(rb'"(num_hidden_layers|n_layer)": ?[1-9]\d{3,}', data)  # a plan of thousands of layers takes its time
            return () if deep and kind == "model" else ("takes longer than the limit",)
        if rc == 1001:
            return ("left a process behind",)
        if rc < 0:
            return (f"signal {signal.Signals(-rc).name}: {first or (lines[-1] if lines else '')}",)
        if rc not in (0, 1, 2, 3) or first:
            return (f"exit code {rc}: {first or (lines[-1] if lines else '')}",)
        may_lack = words[0] == "run" and kind == "plan"  # a plan may ask for more memory than there is
        if (rc == 3 and not may_lack) or (rc not in (0, 3) and "out of memory" in err):
            return (f"exit code 3: {lines[-1] if lines else ''}",)
        if any(len(line) > 1500 for line in lines):
            return ("a line of more than 1500 letters",)
        if any(ord(letter) < 32 and letter not in "\n\t" for letter in err + out):
            return ("control letters",)
        answers = words[0] in ("check-plan", "validate", "calibrate")  # their 1 may stand for what they found
        if rc == 1 and not (answers and out):
            of_qt = kind == "workspace" and [line for line in lines if not line.startswith("foreshard-gui: ")] or []
            complaints = [line for line in lines if not line.startswith("foreshard: resuming") and line not in of_qt]  # said before tensors are read
            if len(complaints) != 1:
                return (f"refused in {len(complaints)} lines: {' | '.join(complaints)[:300]}",)
            shown = words[:2] == ["show", "plan"] and complaints[0].endswith("the plan is not sound")  # a look at what is wrong
            if out and kind != "workspace" and not shown:
                return (f"refused, after output: {complaints[0]}",)
            # The lists of the strategy; the window says what is wrong with one of its fields.
            told = name in complaints[0] or complaints[0].startswith("foreshard: schedule: ") or kind == "workspace" or " would take about " in complaints[0]
            if not told:
                return (f"refused without the file's name: {complaints[0]}",)
        if rc == 2 and not lines and not out:
            return ("infeasible without a reason",)
        return self.judge_numbers(words, data, rc, out)

    def judge_numbers(self, words, data, rc, out):
        if rc != 0:
            return ()
        if "--json" in words:
            try:
                answer = json.loads(out)
            except ValueError as problem:
                return (f"no JSON: {problem}",)
            if words[0] == "simulate":
                seconds = answer.get("iteration_time_s")
                if not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds <= 0:
                    return (f"iteration_time_s is {seconds}",)
        hit = re.search(r"(?<![\w./-])-?(nan|inf)(?![\w])", out, re.IGNORECASE)
        if hit and words[0] != "export" and not re.search(rb"nan|inf", data, re.IGNORECASE):
            return (f"prints {hit.group(0)}: {out[max(0, hit.start() - 60) : hit.end() + 20]!r}",)
        return ()


def key_of(failure):
    """Failures of one key have one cause, as far as a message tells."""
    what = re.sub(r'"[^"]*"', '""', failure["what"])
    what = re.sub(r"found .*?, expected", "found, expected", what)
    what = re.sub(r"\d[\d.,e+-]*", "N", what)
    what = re.sub(r"/\S*/", "", what)
    if "ssert" in what or "internal error" in what or "runtime error" in what:
        return what
    verb = failure["command"].split()[0]
    if "longer than" in what or "SIGFPE" in what or "SIGSEGV" in what or "signal" in what:
        field = re.sub(r"\d+", "N", failure["change"].split(",")[0])
        return f"{what} {failure['kind']} {verb} {field if failure['changes'] == 1 else ''}"
    return f"{what} {failure['kind']} {verb}"


worker = None


def start(options, bases, folder):
    global worker
    worker = Worker(options, bases, folder)


def one(number):
    return worker.case(number)


def save(found, out, seed):
    """One folder for every message, the most frequent first."""
    for index, (_, failures) in enumerate(sorted(found.items(), key=lambda item: -len(item[1])), 1):
        best = min(failures, key=lambda failure: (failure["changes"], len(failure["data"]), failure["number"]))
        folder = pathlib.Path(out) / f"{index:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / best["name"]).write_bytes(best["data"])
        (folder / "command.txt").write_text(
            f"foreshard {best['command']}\n\n{best['what']}\nkind {best['kind']}, base {best['base']}, changed: {best['change']}\n{len(failures)} cases, "
            f"this one: --seed {seed} --only {best['number']}; others: {[failure['number'] for failure in failures[:10]]}\n")
        (folder / "output.txt").write_text(
            f"exit status {best['rc']}\n--- standard error\n{best['err'][:5000]}\n--- standard output\n{best['out'][:5000]}\n")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--gui", help="foreshard-gui, for workspaces")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", help="some of " + ",".join(KINDS))
    parser.add_argument("--only", type=int, help="one case, with its output")
    parser.add_argument("--out", help="folder for what breaks")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cpu", type=int, default=10, help="seconds of processor time of a case")
    parser.add_argument("--memory", type=int, default=4, help="GiB of addresses of a case; 0: as many as there are (sanitizers)")
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    options.kinds = options.kinds.split(",") if options.kinds else [kind for kind in KINDS if kind != "workspace" or options.gui]
    return options


def main():
    options = read_options()
    found, codes = collections.defaultdict(list), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="foreshard-fuzz-") as folder:
        bases = make_bases(options.program, folder, options.kinds)
        numbers = [options.only] if options.only is not None else range(options.first, options.first + options.count)
        with multiprocessing.Pool(1 if options.only is not None else options.jobs, start, (options, bases, folder)) as pool:
            for done, (kind, rc, failure) in enumerate(pool.imap_unordered(one, numbers, chunksize=4), 1):
                codes[(kind, rc)] += 1
                if failure:
                    found[key_of(failure)].append(failure)
                    if options.out and len(found[key_of(failure)]) == 1:
                        save(found, options.out, options.seed)
                if done % 500 == 0:
                    print(f"{done} files, {len(found)} kinds of failures", file=sys.stderr, flush=True)
    if options.out and found:
        shutil.rmtree(options.out, ignore_errors=True)
        save(found, options.out, options.seed)
    for _, failures in sorted(found.items(), key=lambda item: -len(item[1])):
        best = min(failures, key=lambda failure: (failure["changes"], len(failure["data"])))
        print(f"{len(failures)} x {best['what'][:400]}\n    {best['kind']} ({best['base']}: {best['change']}), "
              f"--seed {options.seed} --only {best['number']}: {best['command'][:200]}")
    of = lambda rc: sum(count for (_, code), count in codes.items() if code == rc)
    print(f"{sum(codes.values())} changed files: {of(0)} taken, {of(1)} refused, {of(2)} do not fit; "
          f"{sum(map(len, found.values()))} failures of {len(found)} kinds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

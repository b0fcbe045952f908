"""The jobs whose answers bench/answers/record.py records: simulations drawn at random, by kind, and searches.

A job is the list of words after `foreshard simulate`. Every job has a random sequence of its own, seeded by its kind and number, so a
change of one kind leaves the jobs of the others as they are. Jobs that are refused belong to the draw: a refusal is an answer.
"""
import random

# Models and the number of their layers.
DENSE = {"gpt2-124m": 12, "gpt2-355m": 24, "gpt2-1.5b": 48, "bert-large": 24, "llama-2-7b": 32, "llama-3-8b": 32, "llama-2-13b": 40,
         "megatron-18b": 40, "gpt3-175b": 96, "llama-3-70b": 80, "vgg-16": 37, "resnet-50": 175}
DECODERS = {"gpt2-355m": 24, "gpt2-1.5b": 48, "llama-2-7b": 32, "llama-3-8b": 32, "llama-2-13b": 40, "qwen3-8b": 36, "gemma-2-9b": 42,
            "phi-4": 40, "olmo-2-7b": 32, "granite-3.3-8b": 40, "qwen3-0.6b": 28, "gemma-3-4b": 34, "llama-3-70b": 80}
EXPERTS = {"mixtral-8x7b": 8, "mixtral-8x22b": 8, "qwen3-30b-a3b": 128, "qwen3-235b-a22b": 128, "deepseek-v2-lite": 64, "deepseek-v3": 256,
           "moonlight-16b-a3b": 64, "olmoe-1b-7b": 64, "glm-4.5-air": 128, "gpt-oss-20b": 32, "gpt-oss-120b": 128,
           "granite-3.1-1b-a400m": 32, "llama-4-scout": 16, "minimax-m2": 256, "kimi-k2": 384}  # experts of a layer
EXPERT_LAYERS = {"mixtral-8x7b": 32, "mixtral-8x22b": 56, "qwen3-30b-a3b": 48, "qwen3-235b-a22b": 94, "deepseek-v2-lite": 27, "deepseek-v3": 61,
                 "moonlight-16b-a3b": 27, "olmoe-1b-7b": 16, "glm-4.5-air": 46, "gpt-oss-20b": 24, "gpt-oss-120b": 36,
                 "granite-3.1-1b-a400m": 24, "llama-4-scout": 48, "minimax-m2": 62, "kimi-k2": 61}
NORMS_OF_HEADS = ("qwen3", "gemma-3", "glm")  # split over tp only together with the sequence
MOST_TP = {"gpt2-1.5b": 1, "olmo-2-7b": 1, "olmoe-1b-7b": 1, "minimax-m2": 1, "phi-4": 2, "gemma-3-4b": 4}
CLUSTERS = {"dgx-a100": 8, "dgx-h100-x2": 16, "dgx-a100-x4": 32, "eth25-a100-x2": 16, "pcie-a100-8": 8, "workstation-rtx4090-x4": 16,
            "dgx1-v100-x2": 16, "dgx-b200": 8, "dgx-a100-x16": 128, "eth100-a100-x2": 16}
NEWER = {"dgx-h100": 8, "dgx-h100-x2": 16, "dgx-a100-x2": 16, "dgx-h100-x4": 32, "dgx-b200": 8, "hgx-h200-x2": 16, "dgx-h800-x2": 16,
         "dgx-b200-x4": 32}
FRAMEWORKS = """foreshard megatron megatron-deterministic megatron-2020 megatron-2022 deepspeed torchtitan torchtitan-rowwise torchtitan-eager
fsdp2 fms-fsdp megatron-deepspeed megatron-deepspeed-blocking megatron-deepspeed-bf16 megatron-deepspeed-2020 megatron-zero-bubble
megatron-zero-bubble-2023-09 nemo nemo-24.03 nemo-lora nemo-lora-fp8-inputs megatron-bridge megatron-bridge-current megatron-bridge-graphs
megatron-bridge-iteration-graphs megatron-bridge-router-graphs megatron-bridge-attention-graphs megatron-bridge-unfused fsdp-llm-foundry
fsdp-llm-foundry-autocast aleph-alpha-scaling aleph-alpha-rms aleph-alpha-flash1 aleph-alpha-torch nanotron maxtext internevo llmq
llama-factory-deepspeed hetu-galvatron pytorch-ddp-apex""".split()
WITH_EXPERTS = ["foreshard"] * 4 + ["megatron", "megatron-bridge", "megatron-bridge-current", "megatron-bridge-graphs", "torchtitan", "deepspeed",
                                    "nemo", "megatron-bridge-router-graphs", "megatron-bridge-attention-graphs",
                                    "megatron-bridge-iteration-graphs", "megatron-bridge-unfused", "maxtext"]
POLICIES = """deepspeed_z1 deepspeed_z2 deepspeed_z3 zero_offload fsdp fsdp2 megatron bmtrain_z2 bmtrain_z3 l2l gemini_cpu gemini_static
gemini_auto patrickstar greedy greedy_sync""".split()
CHUNKS = {"interleaved-1f1b": [2, 3, 4], "looped-bfs": [2, 4], "interleaved-zb-1p": [2, 3], "interleaved-cells": [2], "zb-v": [2], "v-half": [2],
          "v-min": [2], "dualpipe-v": [2]}  # virtual stages of the schedules that have some
SCHEDULES = """gpipe 1f1b interleaved-1f1b zb-h1 zb-h2 zb-v looped-bfs interleaved-zb-1p v-half v-min chimera dualpipe dualpipe-v 1f1b-cells
interleaved-cells pipedream pipedream-2bw pipemare zb-2p best""".split()


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def scheduled(rng, schedule):
    words = ["--schedule", schedule]
    return words + ["--virtual-stages", rng.choice(CHUNKS[schedule])] if schedule in CHUNKS else words


def dense(rng, _):
    """Pipelines, ZeRO, recomputation and overlap of dense models, convolutions among them."""
    model, cluster = rng.choice(list(DENSE)), rng.choice(list(CLUSTERS))
    gpus = CLUSTERS[cluster]
    layers = model in ("vgg-16", "resnet-50")
    tp = 1 if layers else rng.choice([d for d in divisors(gpus) if d <= 8])
    cp = 1 if layers or model == "bert-large" or rng.random() < 0.85 else rng.choice([d for d in divisors(gpus // tp) if d <= 4])
    pp = rng.choice([d for d in divisors(gpus // tp // cp) if d <= min(16, DENSE[model])])
    dp = gpus // tp // cp // pp
    micro = rng.choice([1, 1, 2, 4])
    batch = micro * dp * rng.choice([1, 2, 4, 8, 12, 16])
    job = ["--model", model, "--cluster", cluster, "--tp", tp, "--pp", pp, "--cp", cp, "--micro-batch", micro, "--global-batch", batch,
           "--ignore-memory"]
    if pp > 1:
        job += scheduled(rng, rng.choice(["1f1b", "1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v"]))
        if rng.random() < 0.1:
            job += ["--layer-split", "auto"]
    job += ["--zero", rng.choice([0, 0, 1, 1, 2, 3])]
    if dp > 2 and rng.random() < 0.15:
        job += ["--zero-group", rng.choice(divisors(dp)[:-1])]
    if tp > 1 and rng.random() < 0.5:
        job += ["--sequence-parallel"]
    if cluster == "dgx1-v100-x2":
        job += ["--precision", "fp16"]
    if not layers:
        searched = ["rotor", "best"] if DENSE[model] < 80 else ["full", "full"]  # those take minutes of many layers
        job += ["--recompute", rng.choice(["none", "none", "selective", "full", "full:1", "auto", "attention,norm", *searched])]
        if rng.random() < 0.5:
            job += ["--seq", rng.choice([512, 1024])]
    if rng.random() < 0.5:
        job += ["--overlap", rng.choice(["none", "grad", "grad,p2p", "grad,param", "grad,param,p2p", "grad,param,p2p,tp"])]
    if rng.random() < 0.2:
        job += ["--clip-norm", 1]
    if rng.random() < 0.1:
        job += ["--granularity", rng.choice(["op", "stage"])]
    return job


def decoder(rng, clusters=NEWER, most_tp=8, least_pp=1, most_pp=8, most_cp=1, micro=(1, 1, 2, 4), models=None, seqs=(1024, 2048, 4096)):
    """The model, the cluster and the degrees that the kinds below add to; with them the degrees."""
    models = models or DECODERS
    model, cluster = rng.choice(list(models)), rng.choice(list(clusters))
    gpus = clusters[cluster]
    most_tp = min(most_tp, MOST_TP.get(model, most_tp))
    layers = models[model]
    fitting = [d for d in divisors(gpus) if least_pp <= d <= most_pp and layers % d == 0]
    pp = rng.choice(fitting or [2])
    tp = rng.choice([d for d in divisors(gpus // pp) if d <= most_tp])
    cp = rng.choice([d for d in divisors(gpus // pp // tp) if d <= most_cp])
    dp = gpus // tp // cp // pp
    size = rng.choice(micro)
    per_replica = rng.choice([1, 2, 4, 8] if pp == 1 else [pp, 2 * pp, 4 * pp])
    seq = 1024 if model.startswith("gpt2") else rng.choice(seqs)
    job = ["--model", model, "--cluster", cluster, "--tp", tp, "--pp", pp, "--cp", cp, "--micro-batch", size, "--global-batch",
           size * dp * per_replica, "--seq", seq]
    if tp > 1 and (model in EXPERTS or model.startswith(NORMS_OF_HEADS) or rng.random() < 0.5):
        job += ["--sequence-parallel"]
    if rng.random() < 0.7:
        job += ["--ignore-memory"]
    return job, {"model": model, "tp": tp, "pp": pp, "cp": cp, "dp": dp, "micro": size, "seq": seq}


def recomputed(rng):
    return ["--recompute", rng.choice(["selective", "full", "full:1", "attention,norm", "auto", "best"])] if rng.random() < 0.4 else []


def sharded(rng, stages=(1, 2, 3)):
    return ["--zero", rng.choice(stages)] if rng.random() < 0.6 else []


def frameworks(rng, number):
    """Every preset in turn, with what is the framework's own where nothing is said."""
    framework = FRAMEWORKS[number % len(FRAMEWORKS)]
    job, of = decoder(rng, most_pp=4, most_cp=2 if rng.random() < 0.2 else 1)
    job += ["--framework", framework] + recomputed(rng)
    if of["pp"] > 1 and rng.random() < 0.4:
        job += scheduled(rng, rng.choice(["interleaved-1f1b", "gpipe", "zb-h1"]))
    if rng.random() < 0.4:
        job += ["--zero", rng.choice([1, 2, 3])]
    if rng.random() < 0.15:
        job += ["--precision", rng.choice(["fp8", "fp16"])]
    if "lora" in framework:
        job += ["--lora-rank", 16]
    if rng.random() < 0.15:
        job += ["--caching-allocator"]
    return job


def experts(rng, _):
    """Mixtures of experts: latent attention, drops, loads, dispatchers, coded rows, cells."""
    model = rng.choice(list(EXPERTS))
    layers = EXPERT_LAYERS[model]
    if layers > 36 and model != "llama-4-scout":
        layers = rng.choice([8, 16, 24])
    clusters = {name: gpus for name, gpus in NEWER.items() if gpus >= 16 or EXPERTS[model] <= 128}
    job, of = decoder(rng, clusters=clusters, most_tp=4, most_pp=4, most_cp=2 if rng.random() < 0.2 else 1, models={model: layers},
                      micro=(1, 1, 2))
    ep = rng.choice([d for d in divisors(of["tp"] * of["cp"] * of["dp"]) if EXPERTS[model] % d == 0])
    job += ["--ep", ep] + sharded(rng, (1, 1, 2, 3)) + recomputed(rng)
    if layers != EXPERT_LAYERS[model]:
        job += ["--set", f"model.num_hidden_layers={layers}"]
    if ep > 1:
        job += rng.choice([[], [], ["--expert-dispatcher", rng.choice(["all-gather", "hierarchical", "once-per-rank", "once-per-node"])]])
        job += ["--compress-dispatch", rng.choice(["fp8", "eight-bit"])] if rng.random() < 0.15 else []
        job += ["--etp", 2] if of["tp"] * of["cp"] * of["dp"] % (2 * ep) == 0 and rng.random() < 0.2 else []
    job += rng.choice([[], [], ["--expert-load", rng.choice(["equal", "gini:0.15", "zipf:0.5", "1.3", "worst"])]])
    if rng.random() < 0.25:
        job += ["--expert-capacity", rng.choice([1, 1.25, 2])] + (["--expert-unpadded"] if rng.random() < 0.4 else [])
    if of["pp"] > 1 and rng.random() < 0.5:
        job += scheduled(rng, rng.choice(["interleaved-1f1b", "1f1b-cells", "interleaved-cells", "dualpipe", "dualpipe-v", "zb-h1"]))
        job += ["--delay-wgrad"] if "cells" in str(job) and rng.random() < 0.4 else []
    framework = rng.choice(WITH_EXPERTS)
    return job + (["--framework", framework] if framework != "foreshard" else [])


def offload(rng, number):
    """What lies in host memory or on drives, by option and by policy."""
    clusters = {"dgx-a100": 8, "dgx-h100": 8, "dgx-a100-x2": 16, "pcie-a100-8": 8, "workstation-rtx4090": 4}
    policy = number % 3 == 0
    job, of = decoder(rng, clusters=clusters, most_tp=1 if policy else 4, most_pp=1 if policy or rng.random() < 0.6 else 4, micro=(1, 2, 4))
    home = lambda: rng.choice(["host", "host", "nvme"])
    if policy:
        job += ["--policy", POLICIES[number // 3 % len(POLICIES)]]
        job += ["--framework", "deepspeed"] if rng.random() < 0.2 else []
    else:
        job += sharded(rng)
        if rng.random() < 0.5:
            job += ["--offload-optimizer", home()]
            job += ["--offload-kept", rng.choice([0.25, 0.5])] if rng.random() < 0.3 else []
            job += ["--updated-on", rng.choice(["device", "host"])] if rng.random() < 0.3 else []
            job += ["--update-per-layer"] if rng.random() < 0.2 else []
        job += ["--offload-gradients", home()] if rng.random() < 0.3 else []
        job += ["--offload-parameters", home()] if rng.random() < 0.25 else []
        job += ["--framework", rng.choice(["deepspeed", "megatron", "fsdp2", "megatron-deepspeed", "llama-factory-deepspeed"])] if rng.random() < 0.3 else []
    if rng.random() < 0.4:
        job += ["--offload-activations", rng.choice(["inputs", "all", "free-time", "free-time"]), "--offload-to", home()]
        job += ["--offload-layers", rng.choice([1, 4])] if rng.random() < 0.2 else []
    job += ["--layer-split", "auto"] if of["pp"] > 1 and rng.random() < 0.2 else []
    return job + (["--recompute", rng.choice(["full", "selective", "rotor", "best", "full"])] if rng.random() < 0.3 else [])


def compression(rng, number):
    """Coded gradients and activations."""
    job, of = decoder(rng, clusters={"eth25-a100": 8, "eth25-a100-x2": 16, "dgx-a100-x2": 16, "pcie-a100-8": 8}, most_pp=2)
    if of["tp"] > 1 and number % 2:
        job = [word for word in job if word != "--sequence-parallel"]
        job += ["--compress-activations", rng.choice(["token-topk:0.5", "token-topk:0.25", "segmented:8", "segmented:4x8"]), "--attention", "unfused"]
    else:
        codes = ["dgc:0.01", "one-bit", "eight-bit", "segmented:8", "dgc:0.1", "one-bit:100", "segmented:4x8"]
        job += ["--compress-gradients", codes[number // 2 % len(codes)]]
        job += ["--optimizer", "sgd"] if rng.random() < 0.3 else []
    return job + (["--zero", rng.choice([1, 2])] if rng.random() < 0.3 else []) + recomputed(rng)


def schedules(rng, number):
    """Every schedule in turn, those without flushes among them."""
    schedule = SCHEDULES[number % len(SCHEDULES)]
    flushes = not schedule.startswith("pipe")
    models = {name: DECODERS[name] for name in ("llama-2-7b", "llama-3-8b", *(("gpt2-355m", "gpt2-1.5b") if flushes else ()))}
    job, of = decoder(rng, least_pp=2, most_pp=4, most_tp=2, micro=(1, 1, 2), models=models)
    job[job.index("--global-batch") + 1] *= 2 if schedule.startswith("dualpipe") else 1
    job += scheduled(rng, schedule)
    if schedule in CHUNKS and schedule.startswith("interleaved") and of["model"] == "gpt2-355m":
        job[job.index("--virtual-stages") + 1] = 3
    if schedule in ("interleaved-1f1b", "pipedream-2bw") and rng.random() < 0.4:
        job += ["--microbatch-group", 2 * of["pp"]]
    if schedule == "pipemare":
        job += ["--delay-annealing", 1000] if rng.random() < 0.5 else []
    if schedule.startswith("pipe") and rng.random() < 0.5:
        job += ["--iterations", rng.choice([2, 4])]
    job += ["--zero", 1] if flushes and rng.random() < 0.3 else []
    return job + (["--recompute", rng.choice(["full", "selective"])] if rng.random() < 0.3 else [])


def precisions(rng, number):
    """Low precisions, and the formats of what is kept."""
    precision = ["fp8", "nvfp4", "fp16", "tf32", "fp32", "fp8"][number % 6]
    clusters = {"dgx-b200": 8, "dgx-b200-x4": 32} if precision == "nvfp4" else {"dgx-h100": 8, "dgx-b200": 8, "hgx-h200-x2": 16}
    job, _ = decoder(rng, clusters=clusters, most_pp=2)
    job += ["--precision", precision] + sharded(rng)
    job += ["--framework", rng.choice(["megatron", "megatron-bridge", "megatron-bridge-current", "torchtitan-rowwise", "torchtitan", "nemo"])] if rng.random() < 0.5 else []
    for kept in ("--param-dtype", "--grad-dtype", "--state-dtype"):
        job += [kept, rng.choice(["bf16", "fp32"])] if rng.random() < 0.15 else []
    job += ["--loss-scale", 0] if precision == "fp16" and rng.random() < 0.5 else []
    return job + recomputed(rng)


def contexts(rng, number):
    """Context parallelism, long and packed sequences."""
    packed = rng.random() < 0.2
    job, of = decoder(rng, most_pp=2, most_tp=2, most_cp=1 if packed else 8, micro=(1,), seqs=(4096, 8192, 16384))
    if packed:
        job += ["--packed-length", of["seq"] // rng.choice([2, 4])]
    elif of["cp"] > 1:
        job += ["--context", ["all-gather", "ring", "all-to-all"][number % 3]]
    job += ["--framework", rng.choice(["megatron", "torchtitan"])] if rng.random() < 0.25 else []
    return job + sharded(rng) + recomputed(rng)


def servers(rng, number):
    """Parameter servers, synchronous and not, and other algorithms of collectives."""
    clusters = {"eth25-a100-x2": 16, "pcie-a100-8": 8, "dgx-a100-x2": 16, "eth100-a100-x2": 16}
    if number % 3 == 0:
        cluster = rng.choice(list(clusters))
        gpus = rng.choice([4, 7, clusters[cluster] - 1])
        return ["--model", rng.choice(["gpt2-124m", "gpt2-355m", "vgg-16", "resnet-50", "bert-large"]), "--cluster", cluster, "--dp", gpus,
                "--asynchronous", "--global-batch", gpus * rng.choice([1, 2, 4]), "--ignore-memory"]
    job, of = decoder(rng, clusters=clusters, most_pp=2)
    algorithm = ["parameter-server", "tree", "double-tree", "hierarchical", "2d", "gather-to-root", "two-level", "auto"][number % 8]
    job += ["--algorithm", algorithm] + sharded(rng)
    if algorithm == "parameter-server" and of["dp"] > 1:
        job += ["--servers", rng.choice(divisors(of["dp"]))]
    return job


def fine_grained(rng, number):
    """Operators in parts, sums by priority, adapters, stages with degrees of their own, placements."""
    what = number % 5
    if what == 3:
        degrees = rng.choice(["12:8x1,12:8x1", "8:4x2,16:4x2", "12:4x2,12:8x1", "0:4x1,24:4x1", "6:4x1,6:4x1,12:8x1"])
        cluster, model = rng.choice(["eth25-a100-x2", "dgx-a100-x2"]), "gpt2-355m"
        return ["--model", model, "--cluster", cluster, "--stages", degrees, "--global-batch", 64, "--seq", 512, "--micro-batch", 1, "--ignore-memory"]
    job, of = decoder(rng, clusters={"eth25-a100-x2": 16, "dgx-a100": 8, "pcie-a100-8": 8, "dgx-h100-x2": 16}, most_pp=2, micro=(2, 4))
    if what == 0:
        job += ["--parts", rng.choice(["2", "auto", "2,1", "1,2"]), "--overlap", "grad,param,p2p,tp"]
    if what == 1:
        job += ["--sum-order", "priority"] + rng.choice([[], ["--partition", "4 MB"], ["--partition", "4 MB", "--credit", "16 MB"], ["--bucket", "auto"]])
    if what == 2:
        job += ["--lora-rank", rng.choice([8, 16, 64]), "--lora-targets", rng.choice(["attention", "all"])] + sharded(rng)
    if what == 4:
        job += ["--placement", rng.choice(["dp,tp,cp,role", "role,tp,cp,dp", "tp,cp,role,dp"]), "--straggler", f"{rng.randrange(4)}=1.25"] + sharded(rng)
    return job + recomputed(rng)


def told(_, number):
    """Jobs that people have run, with the options next to the one in question."""
    return TOLD[number].split()


TINY = ("--model gpt2-124m --set model.n_layer=4 --set model.n_embd=64 --set model.n_head=4 --set model.vocab_size=128 --set model.n_positions=32 "
        "--cluster dgx-a100 --precision fp32 --dropout 0 --clip-norm 0")
LLAMA = "--model llama-3-8b --cluster dgx-h100 --seq 8192 --global-batch 128"
MIXTRAL = "--model mixtral-8x7b --cluster dgx-h100-x4 --tp 2 --pp 4 --ep 4 --global-batch 256 --zero 1 --sequence-parallel --seq 4096 --recompute full"
QWEN = "--model qwen3-30b-a3b --cluster dgx-h100-x8 --ep 8 --pp 2 --sequence-parallel --seq 8192 --global-batch 32 --recompute full"
TOLD = [f"{TINY} --gpus 1 --global-batch 2 --recompute {way} {offload}" for way in ("rotor", "graph", "full")
        for offload in ("", "--offload-gradients host", "--policy zero_offload", "--policy l2l")]
TOLD += [f"{TINY} --gpus {8 if dp == 4 else 4} --pp 2 --dp {dp} --schedule {schedule} --global-batch 16 {offload}" for dp in (2, 4)
         for schedule in ("chimera", "1f1b") for offload in ("", "--offload-gradients host")]
TOLD += [f"{QWEN} --tp 4 --cp 4 --context {context}" for context in ("ring", "all-gather")] + [f"{QWEN} --tp 2 --cp 2 --context ring"]
TOLD += [f"--model gpt2-1.5b --cluster dgx-a100 --pp 8 --global-batch 64 --offload-activations free-time {more}" for more in (
    "", "--layer-split auto", "--recompute best")]
TOLD += [f"--model gpt2-355m --cluster eth25-a100-x2 --global-batch 128 --seq 512 --micro-batch 1 {degrees}" for degrees in (
    "--stages 12:8x1,12:8x1", "--dp 8 --pp 2")]
TOLD += [f"{LLAMA} --framework {framework} {more}" for framework in ("megatron", "torchtitan", "fsdp2", "deepspeed", "megatron-bridge")
         for more in ("", "--zero 1", "--zero 2 --recompute full")]
TOLD += [f"{MIXTRAL} --framework {framework}" for framework in ("foreshard", "megatron", "torchtitan", "deepspeed", "megatron-bridge")]
TOLD += ["--model mixtral-8x7b --cluster dgx-a100 --dp 2 --ep 2 --gpus 2 --sum-order priority --seq 1024 --global-batch 4 --ignore-memory"]
TOLD += [f"--model llama-3-8b --cluster gb200-nvl72-x8 --framework nemo --precision fp8 --tp 2 --cp 4 --dp 64 --seq 8192 --micro-batch 1 "
         f"--global-batch 64 --zero 1 --set cluster.nics.bandwidth={rate}Gb/s" for rate in (400, 500, 600)]
TOLD += [f"--model gpt2-355m --set model.tie_word_embeddings=false --cluster dgx-a100 --pp 8 --global-batch 64 --micro-batch 1 --schedule "
         f"pipedream-2bw --iterations {runs}" for runs in (1, 4, 8)]
TOLD += ["--model gpt-oss-20b --cluster dgx-h100 --cp 4 --context all-to-all --seq 8192 --global-batch 8",
         "--model qwen3-8b --cluster dgx-h100 --tp 2 --sequence-parallel --seq 4096 --global-batch 16",
         "--model gemma-2-9b --cluster dgx-h100 --tp 2 --seq 4096 --global-batch 16", "--model minimax-m2 --cluster dgx-h100-x8 --ep 8 --seq 4096 --global-batch 64",
         "--model gpt2-355m --cluster dgx-a100 --gpus 1 --offload-optimizer host --bucket 4MB --offload-kept 0.5 --global-batch 8",
         "--model gpt2-355m --cluster dgx-a100 --gpus 1 --offload-optimizer host --global-batch 8",
         "--model gpt2-355m --cluster dgx-a100 --asynchronous --gpus 4 --global-batch 8", "--model gpt2-355m --cluster dgx-a100 --asynchronous --gpus 8 --global-batch 8",
         "--model qwen3-235b-a22b --cluster gb200-nvl72-x4 --gpus 256 --seq 4096 --global-batch 1024 --ep 64 --zero 1",
         "--model llama-3-8b --cluster dgx-h100 --seq 8192 --global-batch 8"]

KINDS = [(dense, 200), (frameworks, 123), (experts, 90), (offload, 66), (compression, 28), (schedules, 60), (precisions, 24), (contexts, 24),
         (servers, 24), (fine_grained, 20), (told, len(TOLD))]


def simulations(share=1.0):
    """(kind, words) of every job."""
    for draw, count in KINDS:
        for number in range(max(1, round(count * share))):
            yield draw.__name__, [str(word) for word in draw(random.Random(f"{draw.__name__} {number}"), number)]


# MODEL CLUSTER GLOBAL-BATCH OPTIONS: those jobs of docs/search.md that take less than half a minute, then frameworks, experts and offload.
SEARCHES = """gpt2-355m eth25-a100 32 --seq 512
gpt2-355m dgx-a100 64
gpt2-1.5b pcie-a100-8-x2 128
gpt2-355m workstation-rtx4090-x4 64
gpt2-1.5b eth25-a100-x4 128
llama-2-7b eth25-a100 64
llama-2-13b dgx-h100-x4 128
bert-large dgx-a100 256
vgg-16 pcie-a100-8 256
resnet-50 eth25-a100-x2 256
llama-3-8b dgx-h100 128 --seq 8192 --framework megatron
llama-3-8b dgx-h100 128 --seq 8192 --framework torchtitan
llama-3-8b dgx-h100 128 --seq 8192 --framework fsdp2
llama-2-70b dgx-a100-x2 64 --seq 4096 --framework megatron-bridge
gpt3-175b dgx-a100-x8 64 --seq 2048 --framework megatron
gpt3-175b dgx-a100-x8 64 --seq 2048 --framework megatron --max-tp 8
llama-2-7b dgx-a100 64 --seq 4096 --framework deepspeed
llama-2-7b dgx-a100-x2 128 --seq 4096 --framework nemo
mixtral-8x7b dgx-h100-x4 256 --seq 4096
mixtral-8x7b dgx-h100-x4 256 --seq 4096 --framework megatron
qwen3-30b-a3b dgx-h100-x2 64 --seq 4096
deepseek-v2-lite dgx-a100 64 --seq 4096
olmoe-1b-7b dgx-a100 64 --seq 2048 --framework torchtitan
llama-2-13b workstation-rtx4090-x2 32 --seq 2048
llama-2-7b workstation-rtx4090 16 --seq 2048 --fix offload_optimizer=host
llama-3-8b dgx-h100-x2 64 --seq 8192 --precision fp8 --framework megatron-bridge
gpt2-1.5b dgx1-v100 64 --precision fp16 --objective memory""".splitlines()

#!/usr/bin/env python3
"""The page docs/gpu-results.md from what run.sh wrote: `report.py results.jsonl [kept-first.jsonl ...] >docs/gpu-results.md`. Of parts that several files have
the last one counts. Every figure is read from the files; standard library only."""
import json
import sys


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def milliseconds(seconds):
    return f"{seconds * 1e3:.2f}"


def gib(count):
    return "-" if count is None else f"{count / 2**30:.2f}"


def percent(value):
    return f"{100 * value:.1f} %"


def difference(a, b):
    return f"{abs(a - b) / abs(b):.1e}" if b else "-"


def machine(data, _):
    lines = [f"{data.get('nvidia_smi', 'no nvidia-smi')}; commit {data['commit']}."]
    for topic, found in data.get("doctor", {}).items():
        lines.append(f"{topic}: {found}.")
    if data["size"] != "full":
        lines.append("**Sizes of a test, not of a measurement.**")
    return [" ".join(lines), ""]


def selftest(data, _):
    wrong = data["wrong"]
    return [f"{data['compared']} comparisons with the host, {len(wrong)} wrong.", "", *(f"- {one}" for one in wrong), *([""] if wrong else [])]


def train(data, peaks):
    sides = [("foreshard", data["foreshard"])]
    if "any_order" in data:
        sides.append(("foreshard --any-order", data["any_order"]))
    pytorch = data.get("pytorch", {"missing": "did not come to it"})
    if "missing" not in pytorch:
        sides.append((f"PyTorch {pytorch['version']}, compiled", pytorch))
    rows = []
    for name, side in sides:
        time = side["iteration_time_s"]
        memory = side.get("reserved_bytes", side.get("device_memory_bytes"))
        rows.append([name, milliseconds(time), f"{data['tokens_per_step'] / time:,.0f}", percent(data["flops"] / time / peaks["bf16"]),
                     percent(data["flops_causal"] / time / peaks["bf16"]), gib(side.get("arena_bytes", side.get("allocated_bytes"))), gib(memory)])
    shape = data["model"]
    lines = [f"{data['parameters'] / 1e9:.2f} billion parameters: {shape['layers']} layers, hidden {shape['hidden']}, {shape['heads']} heads, sequence "
             f"{shape['sequence']}, {shape['microbatches']} micro-batches of {shape['micro_batch']}; AdamW, weights in fp32 beside bf16. The same initial weights "
             "and the same tokens on both sides.", ""]
    lines += table(["", "ms a step", "tokens/s", "MFU", "MFU, causal half", "arena / allocated GiB", "device / reserved GiB"], rows)
    if "missing" in pytorch:
        lines += [f"PyTorch: {pytorch['missing']}", ""]
    else:
        lines += ["; ".join(f"{name} is {pytorch['iteration_time_s'] / side['iteration_time_s']:.2f} times as fast as PyTorch" for name, side in sides[:-1]) + ".", ""]
    lines += [f"Predicted from the datasheet: {milliseconds(data['predicted_s'])} ms, {gib(data['predicted_memory_bytes'])} GiB.", ""]
    curves = zip(*(side["losses"] for _, side in sides))
    lines += table(["step", *(name for name, _ in sides)], [[step + 1, *(f"{loss:.5f}" for loss in losses)] for step, losses in enumerate(curves)])
    return lines


def losses(data, _):
    names = [name for name in ("cuda", "host", "cuda bf16") if name in data]
    rows = [[step + 1, *(f"{data[name][step]:.7f}" for name in names), difference(data["cuda"][step], data["host"][step]) if "host" in data else "-"]
            for step in range(len(data["cuda"]))]
    return table(["step", *(f"{name} fp32" if "bf16" not in name else name for name in names), "cuda to host"], rows)


def calibrate(data, _):
    return ["```", data["text"].rstrip(), "```", ""]


def apart(row):
    if "apart_s" not in row:
        return ["-", "-"]
    return [milliseconds(row["apart_s"]), f"{100 * (row['predicted_s'] / row['apart_s'] - 1):+.1f} %"]


def predict(data, _):
    rows, errors = [], []
    for row in data:
        if "failed" in row or "measured_s" not in row:
            rows.append([f"`{row['strategy']}`", "-", "-", row.get("failed", "did not come to it"), "-", "-", "-"])
            continue
        error = row["predicted_s"] / row["measured_s"] - 1
        errors.append(abs(error))
        rows.append([f"`{row['strategy']}`", milliseconds(row["predicted_s"]), milliseconds(row["measured_s"]), f"{100 * error:+.1f} %", *apart(row), f"{row['losses'][-1]:.5f}"])
    lines = table(["strategy", "predicted ms", "measured ms", "error", "without epilogues, ms", "error", "last loss"], rows)
    if errors:
        lines += [f"Mean of the errors' sizes: {percent(sum(errors) / len(errors))}, largest {percent(max(errors))}. Measured: virtual ranks of one GPU, computes one at a time, put together "
                  "along the plan; transfers take what calibrate measured on both sides.", ""]
    return lines


def sanitizer(data, _):
    if "missing" in data:
        return [data["missing"], ""]
    return [*(f"- {tool}: {found['compared']} comparisons, {len(found['wrong'])} wrong; {'; '.join(found['summary']) or 'no summary'}" for tool, found in data.items()), ""]


def flops_of(row):
    """Of products and of attention whose map a causal mask halves."""
    dims = row["dims"]
    if row["op"] == "matmul":
        return 2 * dims[0] * dims[1] * dims[2] * dims[3]
    if row["op"] == "attention":
        forward = 4 * dims[0] * dims[1] * dims[2] * dims[3] * dims[5] / (2 if "causal" in row["variant"] else 1)
        return forward if row["phase"] == "forward" else 2.5 * forward
    return 0


def kernels(data, peaks):
    pytorch = data.get("pytorch", {"missing": "did not come to it"})
    theirs, rows = pytorch.get("seconds", {}), []
    for place, row in enumerate(data["rows"]):
        limit = max(row["traffic"] / peaks["memory_bandwidth"], flops_of(row) / peaks["bf16"])
        their = theirs.get(str(place))
        rows.append([row["op"], row["phase"], row["variant"], " ".join(map(str, row["dims"])), f"{row['seconds'] * 1e6:.1f}", f"{limit * 1e6:.1f}", percent(limit / row["seconds"]),
                     f"{their * 1e6:.1f}" if their else "-", f"{their / row['seconds']:.2f}" if their else "-"])
    lines = table(["instruction", "phase", "variant", "sizes", "us", "limit us", "of the limit", "PyTorch us", "times as fast"], rows)
    lines += ["Limit: the plan's bytes at the memory's datasheet bandwidth, or the operations at the datasheet's bf16 peak, whichever is more. Warm caches may beat it.", ""]
    if "missing" in pytorch:
        lines += [f"PyTorch: {pytorch['missing']}", ""]
    return lines


def graphs(data, _):
    rows = [[name, milliseconds(found["iteration_time_s"]), f"{found['losses'][-1]:.7f}"] for name, found in data.items()]
    return table(["graphs", "ms a step", "last loss"], rows)


def nccl(data, _):
    lines = [f"Library: {data['library']}.", ""]
    for name in ("a rank per GPU", "two ranks on one GPU"):
        found = data.get(name, {"missing": "did not come to it"})
        if "missing" in found:
            lines.append(f"- {name}: {found['missing']}")
        else:
            wrong = "".join(f"; {one}" for one in found["wrong"])
            lines.append(f"- {name}: {'; '.join(found['nccl'])}: {found['compared']} sums and messages compared, {len(found['wrong'])} wrong{wrong}")
    return [*lines, ""]


PARTS = [("machine", "The machine", machine), ("selftest", "Kernels against the host", selftest),
         ("train", "A decoder of a billion parameters, bf16, one GPU", train), ("losses", "Losses on the GPU and on the host", losses),
         ("predict", "Strategies, predicted and measured", predict), ("kernels", "Instructions against the chip and against PyTorch", kernels),
         ("graphs", "CUDA graphs", graphs), ("nccl", "NCCL", nccl), ("sanitizer", "compute-sanitizer", sanitizer), ("calibrate", "What calibrate measured", calibrate)]


def main():
    found = {}
    for path in sys.argv[1:]:
        with open(path) as file:
            for line in file:
                entry = json.loads(line)
                found[entry["part"]] = entry
    if "machine" not in found or not found["machine"]["data"]:
        sys.exit("report.py: no results of run.sh in " + " ".join(sys.argv[1:] or ["no file"]))
    peaks = found["machine"]["data"]["peaks"]
    print("# GPU results\n\nWritten by `bench/gpu/report.py` from the output of `bench/gpu/run.sh`; not by hand.\n")
    for name, title, lines in PARTS:
        entry = found.get(name, {"state": "not run", "data": None})
        print(f"## {title}\n")
        if entry["state"] != "ok":
            print(f"**{entry['state']}**\n")
        if entry["data"]:
            print("\n".join(lines(entry["data"], peaks)))


if __name__ == "__main__":
    main()

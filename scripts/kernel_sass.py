#!/usr/bin/env python3
"""What the GPU's instructions show of our kernels, without a GPU: the table of docs/cuda.md.

    scripts/kernel_sass.py [--before COMMIT] [--nvcc PATH] [--folder FOLDER]

Compiles exec/cuda/module/kernels.cu for sm_90 and disassembles it. Fails (exit code 1) when a kernel other than the attention of
our own spills registers or touches local memory. Then it compiles the body that a bf16 training takes of each kernel by itself and
counts the instructions of its loops for 16 bytes written (sums: read); with --before it counts those of an earlier commit, whose
loops held the bodies of all types.

nvdisasm comes from the toolkit, or from the wheel of the package index, into a virtual environment in FOLDER (build/sass) that
nothing else uses.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NVDISASM = "nvidia-cuda-nvdisasm==13.2.78"

# The bodies of a bf16 training, and what one loop of them does: 16-byte stores, or loads where nothing is stored. "whole": no loop,
# a thread has up to eight packs of a row in registers. before: (kernel, loops among its outermost ones, elements of a turn).
P = "__shared__ float p[{}]; "
BODIES = {
    "add": ("AddArgs", "add_packs<T>(a)", [("add_arrays", [0], 4)]),
    "GELU": ("ActivationArgs", "activation_forward_packs<T, Curve::Gelu>(a)", [("activation_forward", [0], 4)]),
    "GELU gradient": ("ActivationArgs", "activation_backward_packs<T, Curve::Gelu>(a)", [("activation_backward", [0], 4)]),
    "SwiGLU": ("ActivationArgs", "activation_forward_packs<T, Curve::SwiGlu>(a)", [("activation_forward", [0], 4)]),
    "SwiGLU gradient": ("ActivationArgs", "activation_backward_packs<T, Curve::SwiGlu>(a)", [("activation_backward", [0], 8)]),
    "rope": ("RopeArgs", "rotate_packs<T>(a)", [("rotate", [0], 2)]),
    "dropout": ("DropoutArgs", "dropout_forward_packs<T>(a)", [("dropout_forward", [0], 4)]),
    "norm": ("NormArgs", P.format("kMostWarps") + "norm_forward_packs<T>(a, p)", [("norm_forward", [0, 1, 2], 4)]),
    "norm gradients": ("NormGradArgs", P.format("2 * kSumsAtOnce * kMostWarps") + "norm_backward_packs<T>(a, p)",
                       [("norm_input_grad", [0, 1, 2, 3], 4), ("column_sums", [0], 1), ("column_sums", [0], 1)]),
    "column sums": ("ColumnSumArgs", P.format("kThreads * kWidest") + "column_sums_packs<T, false>(a, p)", [("column_sums", [0], 1)]),
    "token rows": ("LookupArgs", "copy_row<T>(a.table, a.first_row, a.rows, block() * a.h, a.h)", [("token_rows", [0], 4)]),
    "position rows": ("PositionArgs", "position_rows_packs<T>(a, a.samples, a.positions, a.sequence)", [("position_rows", [0], 1)]),
    "cross-entropy": ("CrossEntropyArgs", P.format("kMostWarps") + "loss_of_row<T, 8>(a, p)",
                      [("cross_entropy_forward", [1, 4, 6], 1)]),
    "cross-entropy gradient": ("CrossEntropyArgs", "loss_gradient_of_row<T, 8>(a)", [("cross_entropy_backward", [0], 1)]),
    "gradient norm": ("TermSumArgs", "double sum = 0; squares_of_packs<T>(a.x, 0, a.count, sum); store_double(a.out, thread(), sum)",
                      [("sum_terms", [0], 1)]),
    "Adam": ("UpdateArgs", "update_packs<true, T, T>(a, step_numbers(a))", [("update_adam", [0], 28)]),  # 56 bytes for 4 elements
}
EXCUSED = re.compile("attention_|flash_")  # fallbacks for what cuDNN has


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(part) for part in command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def disassembler(nvcc, folder):
    for at in (nvcc.parent / "nvdisasm", shutil.which("nvdisasm")):
        if at and pathlib.Path(at).exists():
            return pathlib.Path(at)
    venv = folder / "venv"
    if not venv.exists():
        run(sys.executable, "-m", "venv", venv)
        run(venv / "bin/pip", "install", "--quiet", NVDISASM)
    return next(venv.glob("lib/python*/site-packages/nvidia/*/bin/nvdisasm"))


def compiled(nvcc, source, include, cubin):
    """Compiles for sm_90; what ptxas says of each kernel: (registers, bytes of stack, bytes spilled)."""
    told, name = {}, ""
    log = run(nvcc, "-std=c++20", "-O3", f"-I{include}", "-gencode=arch=compute_90,code=sm_90", "-Xptxas", "-v", "-cubin", "-o", cubin, source)
    for line in log.splitlines():
        if at := re.search(r"entry function '(\w+)'", line):
            name = short(at[1])
        elif at := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spilled = int(at[1]), int(at[2]) + int(at[3])
        elif at := re.search(r"Used (\d+) registers", line):
            told[name] = (int(at[1]), stack, spilled)
    return told


def short(mangled):
    at = re.search(r"gpu(\d+)(\w+)", mangled)
    return at[2][: int(at[1])] if at else mangled


def functions(nvdisasm, cubin):
    """Instructions of each kernel, and the first of each label."""
    all_of, now = {}, None
    for line in run(nvdisasm, "-c", cubin).splitlines():
        if at := re.match(r"\.text\.(\S+):", line):
            now = all_of.setdefault(short(at[1]), ([], {}))
        elif now and (at := re.match(r"(\.L_x_\d+):", line.strip())):
            now[1][at[1]] = len(now[0])
        elif now and (at := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line)):
            now[0].append(at[1])
    return all_of


def count(instructions, pattern):
    return sum(bool(re.search(pattern, one)) for one in instructions)


def loops(function):
    """Loops that reach memory, as lists of instructions, outermost only, in order."""
    instructions, labels = function
    found = []
    for i, one in enumerate(instructions):
        at = re.search(r"\bBRA\b.*\((\.L_x_\d+)\)", one)
        if at and labels.get(at[1], i + 1) <= i and count(instructions[labels[at[1]] : i + 1], r"\b(LDG?|STG?)\."):
            found.append((labels[at[1]], i + 1))
    outer = [a for a in found if not any(b != a and b[0] <= a[0] and a[1] <= b[1] for b in found)]
    return [instructions[first:end] for first, end in sorted(outer)]


def packs(loop):
    """16-byte stores, or loads where nothing is stored."""
    return count(loop, r"\bSTG\.\S*128") or count(loop, r"\bLDG\.\S*128")


def for_16_bytes(function):
    """A turn of each loop: of one that is there unrolled and once more for what is left, the unrolled."""
    if not loops(function):
        return len(function[0]) / 8
    reads, writes = {}, {}  # loops that only read add up; of those that write the first that reads too is what a turn does
    for loop in loops(function):
        loads, stores = count(loop, r"\bLDG\.\S*128"), count(loop, r"\bSTG\.\S*128")
        if loads:
            kinds = writes if stores else reads
            kinds[stores / loads] = max(kinds.get(stores / loads, []), loop, key=packs)
    turns = list(reads.values()) + list(writes.values())[:1]
    return sum(len(loop) / packs(loop) for loop in turns)


def bodies(nvcc, nvdisasm, folder):
    source = folder / "bodies.cu"
    lines = ['#include "exec/cuda/kernels/all.h"', "namespace foreshard::gpu {", "constexpr Type T = Type::BF16;"]
    for i, (args, body, _) in enumerate(BODIES.values()):
        lines.append(f"__global__ void body_{i}(const {args} a) {{ {body}; }}")
    source.write_text("\n".join(lines + ["}", ""]))
    told = compiled(nvcc, source, ROOT, folder / "bodies.cubin")
    found = functions(nvdisasm, folder / "bodies.cubin")
    return {name: (for_16_bytes(found[f"body_{i}"]), *told[f"body_{i}"]) for i, name in enumerate(BODIES)}


def before(nvcc, nvdisasm, folder, commit):
    tree = folder / "before"
    tree.mkdir(exist_ok=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit, "exec", "core"], capture_output=True, check=True)
    subprocess.run(["tar", "x", "-C", tree], input=archive.stdout, check=True)
    compiled(nvcc, tree / "exec/cuda/module/kernels.cu", tree, folder / "before.cubin")
    found = functions(nvdisasm, folder / "before.cubin")
    return {name: sum(len(loops(found[kernel])[at]) * 8 / elements for kernel, which, elements in was for at in which)
            for name, (_, _, was) in BODIES.items()}


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--before", metavar="COMMIT")
    ask.add_argument("--nvcc", type=pathlib.Path, default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    ask.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/sass")
    given = ask.parse_args()
    nvcc, folder = pathlib.Path(given.nvcc), given.folder
    folder.mkdir(parents=True, exist_ok=True)
    nvdisasm = disassembler(nvcc, folder)

    told = compiled(nvcc, ROOT / "exec/cuda/module/kernels.cu", ROOT, folder / "kernels.cubin")
    found = functions(nvdisasm, folder / "kernels.cubin")
    faults = []
    for name, (registers, stack, spilled) in sorted(told.items()):
        local = count(found[name][0], r"\b(LDL|STL)\b")
        if stack or spilled or local:
            faults.append(name)
            print(f"{name}: {registers} registers, {stack} bytes of stack, {spilled} bytes spilled, {local} accesses to local memory")
    print(f"{len(told) - len(faults)} of {len(told)} kernels neither spill nor touch local memory\n")

    now = bodies(nvcc, nvdisasm, folder)
    was = before(nvcc, nvdisasm, folder, given.before) if given.before else {}
    print("| kernel | before | now | registers |\n|---|---|---|---|")
    for name, (instructions, registers, _, _) in now.items():
        print(f"| {name} | {was[name]:.0f} |" if was else f"| {name} | |", f"{instructions:.0f} | {registers} |")
    return 1 if any(not EXCUSED.match(name) for name in faults) else 0


if __name__ == "__main__":
    sys.exit(main())

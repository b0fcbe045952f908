#!/usr/bin/env python3
"""Reads the options of a training framework from its source and prints them as a table for tests/strategy/frameworks/framework_export_test.cpp.

    scripts/framework_options.py megatron   CHECKOUT [REVISION] > data/options/megatron.csv
    scripts/framework_options.py torchtitan CHECKOUT v0.2.2     > data/options/torchtitan.csv
    scripts/framework_options.py deepspeed  CHECKOUT [REVISION] > data/options/deepspeed.csv

CHECKOUT is a git repository, with or without a work tree. Nothing of it is imported or run: the files are parsed. Columns: option, type
(flag, int, float, str, bool, list, dict, any), choices (separated by |), default.
"""
import ast
import csv
import subprocess
import sys


class Checkout:
    def __init__(self, path, revision):
        self.path, self.revision = path, revision

    def git(self, *words):
        return subprocess.run(["git", "-C", self.path, *words], check=True, capture_output=True, text=True).stdout

    def tree(self, name):
        return ast.parse(self.git("show", f"{self.revision}:{name}"))

    def version(self):
        return self.git("log", "-1", "--format=%h %cs", self.revision).strip()


def words(node):
    """The text of a default, of an option's name or of a choice."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return "" if node.value is None else str(node.value)
    return ast.unparse(node)


def type_of(annotation):
    """Of a field, and the choices that it lists."""
    if annotation is None:
        return "any", []
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return type_of(ast.parse(annotation.value, mode="eval").body)
    if isinstance(annotation, ast.BinOp):  # int | None
        return type_of(annotation.left)
    if isinstance(annotation, ast.Subscript):
        name = words(annotation.value).split(".")[-1]
        inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if name == "Literal":
            return "str", [words(choice) for choice in inside]
        if name in ("Optional", "Union"):
            return type_of(inside[0])
        return {"list": "list", "List": "list", "dict": "dict", "Dict": "dict"}.get(name, "any"), []
    name = words(annotation).split(".")[-1]
    return (name if name in ("int", "float", "str", "bool", "list", "dict") else "any"), []


def classes(tree):
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def fields(cls, known):
    """Annotated fields of a class, those of its bases first: name, annotation, default, keywords of its field()."""
    found = {}
    for base in cls.bases:
        if words(base) in known:
            found.update({name: rest for name, *rest in fields(known[words(base)], known)})
    for node in cls.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        default, keywords = node.value, {}
        if isinstance(default, ast.Call) and words(default.func) in ("field", "Field"):
            keywords = {k.arg: k.value for k in default.keywords}
            default = default.args[0] if default.args else keywords.get("default")
        found[node.target.id] = [node.annotation, default, keywords]
    return [(name, *rest) for name, rest in found.items()]


def enumerators(tree):
    return {name: [words(t) for node in cls.body if isinstance(node, ast.Assign) for t in node.targets]
            for name, cls in classes(tree).items()}


# --- Megatron-LM: argparse calls, and options that are made of the fields of dataclasses


def megatron(checkout):
    arguments = checkout.tree("megatron/training/arguments.py")
    known, enums = {}, {}
    for name in ("megatron/core/model_parallel_config.py", "megatron/core/transformer/transformer_config.py",
                 "megatron/training/config/training_config.py", "megatron/training/config/common_config.py",
                 "megatron/training/config/resilience_config.py"):
        known.update(classes(checkout.tree(name)))
    enums.update(enumerators(checkout.tree("megatron/core/transformer/enums.py")))
    rows = []
    for function in ast.walk(arguments):
        if isinstance(function, ast.FunctionDef):
            rows += megatron_group(function, known, enums)
    return rows


def megatron_group(function, known, enums):
    rows, lists = [], {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            lists[words(node.targets[0])] = [words(item) for item in node.value.elts]
        if not isinstance(node, ast.Call):
            continue
        keywords = {k.arg: k.value for k in node.keywords}
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument" and node.args:
            rows += [(words(name), *argparse_row(keywords)) for name in node.args if words(name).startswith("--")]
        if words(node.func) == "ArgumentGroupFactory" and words(node.args[0]) in known:
            exclude = keywords.get("exclude")
            left_out = lists.get(words(exclude), []) if isinstance(exclude, ast.Name) else [words(e) for e in exclude.elts] if exclude else []
            rows += [row for f in fields(known[words(node.args[0])], known) if f[0] not in left_out for row in field_rows(*f, enums)]
    return rows


def argparse_row(keywords):
    action = words(keywords.get("action"))
    if action in ("store_true", "store_false"):
        return "flag", [], "" if action == "store_true" else "True"
    kind = "list" if "nargs" in keywords else words(keywords.get("type")) or "str"
    choices = keywords.get("choices")
    return (kind if kind in ("int", "float", "str", "list") else "any",
            [words(c) for c in choices.elts] if isinstance(choices, (ast.List, ast.Tuple)) else [], words(keywords.get("default")))


def field_rows(name, annotation, default, keywords, enums):
    kind, choices = type_of(annotation)
    names = ["--" + name.replace("_", "-")]
    if words(annotation) in enums:
        kind, choices, default = "str", enums[words(annotation)], ast.parse(words(default).split(".")[-1], mode="eval").body
    if kind == "bool":
        kind = "flag"
        if words(default) == "True":
            names = ["--no-" + name.replace("_", "-"), "--disable-" + name.replace("_", "-")]
    meta = keywords.get("metadata")
    if isinstance(meta, ast.Dict):
        for key, value in zip(meta.keys, meta.values):
            if words(key) == "argparse_meta" and isinstance(value, ast.Dict):
                inner = {words(k): v for k, v in zip(value.keys, value.values)}
                if "arg_names" in inner:
                    names = [words(n) for n in inner["arg_names"].elts]
                if "type" in inner and kind != "flag":
                    kind = words(inner["type"])
    return [(option, kind, choices, words(default)) for option in names]


# --- torchtitan: a dataclass of dataclasses, the sections of its file


def torchtitan(checkout):
    known = classes(checkout.tree("torchtitan/config/job_config.py"))
    rows = []

    def section(cls, path):
        for name, annotation, default, _ in fields(known[cls], known):
            if words(annotation) in known:
                section(words(annotation), path + [name])
            else:
                kind, choices = type_of(annotation)
                rows.append((".".join(path + [name]), kind, choices, words(default)))

    section("JobConfig", [])
    return rows


# --- DeepSpeed: constants of the top level, pydantic classes of the objects below


def deepspeed(checkout):
    rows = []
    constants = {words(node.targets[0]): node.value for node in checkout.tree("deepspeed/runtime/constants.py").body
                 if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)}
    config = checkout.tree("deepspeed/runtime/config.py")
    top = {words(call.args[1]) for call in ast.walk(config)
           if isinstance(call, ast.Call) and words(call.func) == "get_scalar_param" and words(call.args[0]) == "param_dict"}
    top |= {"TRAIN_BATCH_SIZE", "TRAIN_MICRO_BATCH_SIZE_PER_GPU", "COMMUNICATION_DATA_TYPE"}  # read through functions of their own
    parts = {"GRAD_ACCUM_DTYPE", "PARAM_DTYPE", "BUFFER_DTYPE"}
    for name in sorted((top | parts) & set(constants)):
        default = constants.get(name + "_DEFAULT")
        value = getattr(default, "value", None)
        kind = "any" if value is None else type(value).__name__
        rows.append((("data_types." if name in parts else "") + constants[name].value, kind, [], words(default)))
    for section, file, cls in (("zero_optimization", "zero/config.py", "DeepSpeedZeroConfig"),
                               ("bf16", "precision_config.py", "DeepSpeedBF16Config"),
                               ("fp16", "precision_config.py", "DeepSpeedFP16Config"),
                               ("tensor_parallel", "tensor_parallel/config.py", "TPTrainingConfig")):
        known = classes(checkout.tree("deepspeed/runtime/" + file))
        for name, annotation, default, keywords in fields(known[cls], known):
            kind, choices = type_of(annotation)
            if words(annotation) == "ZeroStageEnum":
                kind, choices = "int", [words(n.value) for n in known["ZeroStageEnum"].body if isinstance(n, ast.Assign)]
            rows.append((section + "." + (words(keywords.get("alias")) or name), kind, choices, words(default)))
    return rows


READERS = {"megatron": megatron, "torchtitan": torchtitan, "deepspeed": deepspeed}


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in READERS:
        sys.exit(__doc__)
    checkout = Checkout(sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else "HEAD")
    rows = {row[0]: row for row in READERS[sys.argv[1]](checkout)}
    print(f"# {sys.argv[1]} {checkout.version()}; written by scripts/framework_options.py")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["option", "type", "choices", "default"])
    for option, kind, choices, default in sorted(rows.values()):
        table.writerow([option, kind, "|".join(choices), " ".join(default.split())])


if __name__ == "__main__":
    main()

"""Changes of files: of JSON by its structure, of tables by their cells, of any file by its bytes. Every change is drawn from a random.Random."""
import json
import re

NUMBERS = [0, -1, 1, 2, 3, 7, 64, 1000, 10**9, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, -2**31, -2**63, 0.5, 1e-308,
           1e300, 1e308, -1e308, 0.1, 1.0000000001]
TOKENS = ["NaN", "Infinity", "-Infinity", "1e400", "-0", "0x10", "01", "1.", "'a'", "undefined", "1e99999999", "[" * 199 + "]" * 199, "[" * 5000,
          "{\"a\":" * 5000, "\"\\ud800\"", "\"\\u0000\"", "/*"]  # not, or hardly, JSON
TEXTS = ["", " ", "0", "-1", "nan", "inf", "null", "1e308", "1 GB", "99999999999 PiB", "-5 GB/s", "1e400 GiB", "x" * 10000, "../../../etc/passwd",
         "/dev/null", "\x1b[2J", "a\nb", "\u00e4\u4e2d", "%s%n", "1,2,3", "0x4", "4x0", "1x1000000000", "auto", "best", "file:/nowhere"]
CELLS = ["", "0", "-1", "1", "2", "0.5", "1e9", "1e-9", "1e308", "1e400", "nan", "inf", "-inf", "abc", "1,100", "1 100", "1100 ms", "6,144", "\"", "'",
         " ", "9223372036854775807", "9223372036854775808", "2147483648", "x" * 5000, "=1+1", "yes", "no", "none", "full", "\u00e4", "0x10", "+5", "1e"]


def plain(text):
    """JSON without its // comments."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda hit: hit.group(1) or "", text)


def paths_by_shape(value):
    """Paths of all values; those that differ in array indices only stand together, so that long arrays are not drawn more often."""
    shapes = {}

    def walk(node, path, shape):
        if path:
            shapes.setdefault(shape, []).append(path)
        if isinstance(node, dict):
            for key, part in node.items():
                walk(part, path + (key,), shape + (key,))
        elif isinstance(node, list):
            for index, part in enumerate(node):
                walk(part, path + (index,), shape + ("*",))

    walk(value, (), ())
    return list(shapes.values())


def at(value, path):
    for step in path:
        value = value[step]
    return value


class JsonChange:
    """One document that is changed in place. Tokens that are no JSON and double keys are written in a second step."""

    def __init__(self, text, rng):
        self.rng, self.value, self.late, self.shapes = rng, json.loads(plain(text)), [], None
        self.shapes = paths_by_shape(self.value)

    def text(self):
        text = json.dumps(self.value, indent=None if self.rng.random() < 0.5 else 1)
        for mark, token in self.late:
            text = text.replace(mark, token)
        return text

    def token(self, token):
        mark = f"@late {len(self.late)}@"
        self.late.append((json.dumps(mark), token))
        return mark

    def drawn(self):
        for _ in range(20):
            path = self.rng.choice(self.rng.choice(self.shapes))
            try:
                parent, value = at(self.value, path[:-1]), at(self.value, path)
            except (KeyError, IndexError, TypeError):
                continue  # gone by an earlier change
            if isinstance(parent, (dict, list)):
                return path, parent, value
        return None

    def other(self, old):
        rng = self.rng
        kinds = ["number", "text", "token", "type", "nearby"]
        if isinstance(old, bool) or old is None:
            kinds += ["flip"]
        if isinstance(old, (int, float)):
            kinds += ["nearby"] * 4 + ["number"] * 3
        if isinstance(old, str):
            kinds += ["nearby"] * 3 + ["text"] * 2
        kind = rng.choice(kinds)
        if kind == "flip":
            return not old
        if kind == "number":
            return rng.choice(NUMBERS)
        if kind == "text":
            return rng.choice(TEXTS)
        if kind == "token":
            return self.token(rng.choice(TOKENS))
        if kind == "type":
            return rng.choice([None, True, False, [], {}, [old], {"a": old}, [old, old], str(old)[:200]])
        return self.nearby(old)

    def nearby(self, old):
        rng = self.rng
        if isinstance(old, bool):
            return not old
        if isinstance(old, (int, float)):
            return rng.choice([old + 1, old - 1, -old, old * 2, old * 3, old / 2, old // 2 if old else 1, old * 1000, old * 10**6, old / 1000, old * 1e12])
        if isinstance(old, str):
            other_number = re.sub(r"\d+", lambda hit: str(rng.choice(NUMBERS)), old, count=1)
            return rng.choice([old.upper(), old[:-1], old + "x", old + " ", "x" + old, old[1:], old * 2, other_number])
        if isinstance(old, list) and old:
            return rng.choice([old[:-1], old[1:], old + old[-1:], old[::-1], old * 2, [], old[:1] * 3000 if len(json.dumps(old[0])) < 200 else old * 3])
        if isinstance(old, dict):
            keys = list(old)
            return {key: old[key] for key in keys[: len(keys) // 2]}
        return rng.choice(NUMBERS)

    def change(self):
        drawn = self.drawn()
        if drawn is None:
            return "nothing"
        path, parent, old = drawn
        rng, last = self.rng, path[-1]
        kind = rng.choice(["delete", "key", "double", "swap", "move", *["other"] * 8, *["nearby"] * 4])
        where = ".".join(map(str, path))[:80]
        if kind == "delete":
            del parent[last]
        elif kind == "key" and isinstance(parent, dict):
            other = rng.choice([last.upper(), last + "s", last[:-1], "", "__proto__", "x" * 3000, rng.choice(rng.choice(self.shapes))[-1]])
            parent[str(other)] = parent.pop(last)
        elif kind == "double" and isinstance(parent, dict):
            mark = f"@double {len(self.late)}@"
            self.late.append((mark, str(last)))
            parent[mark] = old if rng.random() < 0.5 else self.other(old)
        elif kind in ("swap", "move"):
            second = self.drawn()
            if second is None:
                return "nothing"
            path2, parent2, other = second
            copied = json.loads(json.dumps(other))
            if kind == "swap" and path2[: len(path)] != path and path[: len(path2)] != path2:
                parent2[path2[-1]] = json.loads(json.dumps(old))
            parent[last] = copied  # where the parent went by the swap, this one is lost
        elif kind == "nearby":
            parent[last] = self.nearby(old)
        else:
            kind = "other"
            parent[last] = self.other(old)
        return f"{kind} {where}"


def changed_json(text, rng, count):
    document = JsonChange(text, rng)
    said = [document.change() for _ in range(count)]
    return document.text().encode("utf-8", "surrogatepass"), ", ".join(said)


def changed_table(text, rng, count):
    """Cells of a CSV table; quoting is kept as it was by cutting at commas outside quotes."""
    rows = [re.findall(r'(?:^|,)((?:"[^"]*"|[^,"])*)', line) for line in text.rstrip("\n").split("\n")]
    said = []
    for _ in range(count):
        kind = rng.choice([*["cell"] * 8, "swap", "drop cell", "more cells", "double row", "drop column", "double column", "rename column", "drop row"])
        line = rng.randrange(1, len(rows)) if len(rows) > 1 and rng.random() < 0.95 else 0
        row = rows[line]
        column = rng.randrange(len(row)) if row else 0
        name = rows[0][column] if column < len(rows[0]) else column
        if not row:
            continue
        if kind == "cell":
            row[column] = rng.choice(CELLS)
        elif kind == "swap":
            other = rng.randrange(len(row))
            row[column], row[other] = row[other], row[column]
        elif kind == "drop cell":
            del row[column]
        elif kind == "more cells":
            row.extend(rng.choice(CELLS) for _ in range(rng.choice([1, 3, 1000])))
        elif kind == "double row":
            rows.insert(line, list(row))
        elif kind == "drop row":
            del rows[line]
            if not rows:
                rows.append([])
        elif kind == "rename column":
            rows[0][min(column, len(rows[0]) - 1)] = rng.choice(CELLS + rows[0]) if rows[0] else ""
        else:
            for each in rows:
                if column < len(each):
                    if kind == "drop column":
                        del each[column]
                    else:
                        each.insert(column, each[column])
        said.append(f"{kind} {name}")
    ending = rng.choice(["\n"] * 9 + ["\r\n"])
    start = "\ufeff" if rng.random() < 0.03 else ""
    return (start + ending.join(",".join(row) for row in rows) + ending).encode("utf-8", "surrogatepass"), ", ".join(said)


def changed_bytes(data, rng, count, others):
    data, said = bytearray(data), []
    for _ in range(count):
        kind = rng.choice(["flip", "flip", "cut", "insert", "remove", "double", "zero", "splice", "digit", "digit", "digit"])
        place = rng.randrange(len(data)) if data else 0
        length = min(rng.choice([1, 2, 8, 64, 1000]), max(0, len(data) - place))
        if kind == "flip" and data:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del data[place:]
        elif kind == "insert":
            data[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 4, 100])))
        elif kind == "remove":
            del data[place : place + length]
        elif kind == "double":
            data[place:place] = data[place : place + length]
        elif kind == "zero":
            data[place : place + length] = bytes(length)
        elif kind == "splice":
            other = rng.choice(others)
            cut = rng.randrange(len(other) + 1)
            data = data[:place] + bytearray(other[cut:])
        elif kind == "digit":  # one digit becomes another, so that the file stays what it is but for one number
            digits = [i for i, byte in enumerate(data[:200000]) if 48 <= byte <= 57]
            if digits:
                data[rng.choice(digits)] = 48 + rng.randrange(10)
        said.append(f"{kind} at {place}")
    return bytes(data), ", ".join(said)


def changed_checkpoint(data, rng, count):
    """The header of a safetensors file, by its structure: 8 bytes of length, JSON, then the numbers."""
    length = int.from_bytes(data[:8], "little")
    header, said = changed_json(data[8 : 8 + length].decode(), rng, count)
    size = rng.choice([len(header)] * 8 + [0, 1, len(header) - 1, 2**31, 2**62, 2**64 - 1])
    return size.to_bytes(8, "little") + header + data[8 + length :], said

#!/usr/bin/env python3
"""Records what foreshard answers, so that a change of the inside can be held against it.

    bench/answers/record.py simulate PROGRAM FILE.csv [--share 1]    the random jobs of jobs.py, simulated: five minutes of one core
    bench/answers/record.py search   PROGRAM FILE.csv                the winners of its searches, with their CPU time
    bench/answers/record.py compare  BEFORE.csv AFTER.csv [--list DIFFERENCES.csv]
                                     prints every difference: the job, what differs, before -> after; exit status 1 if an answer differs

simulate.csv and search.csv are the answers of commit 39efa480; CPU seconds on a busy machine.

Two programs answer the same questions. A refusal is an answer too, with its words: of wrong input, of a strategy that does not fit, and of
a program that ends by a signal (rc below 0, as Python has it) the assertion. A job that needs more processor time than the limit has rc 124.
A time may differ by 1e-9 of itself. A winner that is slower by 0.3 % at most, another refusal of the same kind and a job that now needs more
or less time than the limit are listed, and do not count.
"""
import argparse
import collections
import csv
import json
import re
import resource
import signal
import subprocess
import sys

from jobs import SEARCHES, simulations

SAME = 1e-9
SIMULATED = ["kind", "job", "rc", "iteration_s", "low_s", "high_s", "peak_bytes", "reserved_bytes", "bubble", "exposed", "refusal"]
NUMBERS = SIMULATED[3:-1]
SEARCHED = ["job", "rc", "simulated_s", "cpu_s", "strategy", "refusal"]
SIMULATE_LIMIT, SEARCH_LIMIT = 20, 60  # seconds of processor time
TOO_LONG = 124


def run(program, words, limit):
    """Exit status, the JSON printed, the lines said and the processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    bound = lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    try:
        done = subprocess.run([program, *words, "--json"], capture_output=True, text=True, errors="replace", timeout=20 * limit, preexec_fn=bound)
    except subprocess.TimeoutExpired:
        return TOO_LONG, {}, [], limit
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rc = TOO_LONG if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else done.returncode
    try:
        answer = json.loads(done.stdout) if done.stdout else {}
    except ValueError:
        answer = {}
    return rc, answer, done.stderr.strip().splitlines(), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def refusal(rc, answer, said):
    """The reason for which a job has no answer; of an assertion the condition and its place, whatever the folder of the sources."""
    if rc in (0, TOO_LONG):
        return ""
    if rc == 2 and answer.get("infeasible_reason"):
        return answer["infeasible_reason"][:300]
    broken = [line for line in said if "assert" in line.lower() or "terminate called" in line or "internal error" in line]
    line = broken[0] if broken else said[-1] if said else ""
    return re.sub(r"\S*/((?:core|strategy|replay|sim|report|exec|validation|cli|gui)/\S+)", r"\1", line)[:300]


def simulated_row(kind, words, rc, answer, said):
    row = {"kind": kind, "job": " ".join(words), "rc": rc, "refusal": refusal(rc, answer, said)}
    if rc == 0:
        interval, peak = answer.get("prediction_interval") or {}, answer["peak_memory_bytes"]
        row |= {"iteration_s": repr(answer["iteration_time_s"]), "low_s": interval.get("low_s", ""), "high_s": interval.get("high_s", ""),
                "peak_bytes": peak["max"], "reserved_bytes": peak.get("reserved") or "", "bubble": f"{answer['bubble_fraction']:.9f}",
                "exposed": f"{answer['exposed_communication_fraction']:.9f}"}
    return row


def simulate(program, path, share):
    jobs = list(simulations(share))
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, SIMULATED, lineterminator="\n")
        rows.writeheader()
        for number, (kind, words) in enumerate(jobs, 1):
            rc, answer, said, _ = run(program, ["simulate", *words], SIMULATE_LIMIT)
            rows.writerow(simulated_row(kind, words, rc, answer, said))
            file.flush()
            print(f"\r{number}/{len(jobs)}", end="", file=sys.stderr)
    print(file=sys.stderr)


def search(program, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, SEARCHED, lineterminator="\n")
        rows.writeheader()
        for job in SEARCHES:
            model, cluster, batch, *more = job.split()
            words = ["search", "--model", model, "--cluster", cluster, "--global-batch", batch, *more, "--threads", "1", "--force"]
            rc, answer, said, cpu = run(program, words, SEARCH_LIMIT)
            best = min((row for row in answer.get("results", []) if row.get("simulated")), key=lambda row: row["simulated"], default=None)
            rows.writerow({"job": job, "rc": rc, "simulated_s": repr(best["simulated"]) if best else "", "cpu_s": f"{cpu:.2f}",
                           "strategy": json.dumps(best["strategy"], separators=(",", ":")) if best else "", "refusal": refusal(rc, answer, said)})
            file.flush()
            print(f"{job}: {best['simulated'] if best else rc} in {cpu:.2f} s", file=sys.stderr)


def answered(row):
    if row["rc"] == str(TOO_LONG):
        return "no answer within the limit"
    if row["rc"] != "0":
        return f"exit status {row['rc']}: {row['refusal']}"
    time = row.get("iteration_s") or row.get("simulated_s")
    return f"{float(time):.6g} s" if time else "an answer without a time"


def changed_number(a, b):
    if a == b:
        return False
    try:
        a, b = float(a), float(b)
    except ValueError:
        return True
    return abs(a - b) > max(SAME * abs(a), 1e-9 if abs(a) <= 1 else 0)


def simulated_differences(old, new):
    """(what, before, after, counts) of one job."""
    if old["rc"] != new["rc"]:
        what = "answer to refusal" if old["rc"] == "0" else "refusal to answer" if new["rc"] == "0" else "other exit status"
        limit = str(TOO_LONG) in (old["rc"], new["rc"])
        return [("limit" if limit else what, answered(old), answered(new), not limit)]
    if old["rc"] != "0":
        return [("words", old["refusal"], new["refusal"], False)] if old["refusal"] != new["refusal"] else []
    return [(name, old[name], new[name], True) for name in NUMBERS if changed_number(old[name], new[name])]


def searched_differences(old, new):
    if old["rc"] != new["rc"]:
        limit = str(TOO_LONG) in (old["rc"], new["rc"])
        return [("limit" if limit else "exit status", answered(old), answered(new), not limit)]
    if old["rc"] != "0" or not old["simulated_s"] or not new["simulated_s"]:
        return [("answer", answered(old), answered(new), True)] if answered(old) != answered(new) else []
    ratio = float(new["simulated_s"]) / float(old["simulated_s"])
    if abs(ratio - 1) > SAME:
        return [(f"winner x{ratio:.4f}", *chosen(old, new), ratio > 1.003)]
    return []


def chosen(old, new):
    """Both winners, with what differs between their strategies."""
    a, b = json.loads(old["strategy"]), json.loads(new["strategy"])
    words = lambda row, own, other: f"{float(row['simulated_s']):.6g} s" + "".join(
        f" {key}={json.dumps(value)}" for key, value in own.items() if other.get(key) != value)
    return words(old, a, b), words(new, b, a)


def compare(before_path, after_path, listed):
    read = lambda path: {row["job"]: row for row in csv.DictReader(open(path, encoding="utf-8", newline=""))}
    before, after = read(before_path), read(after_path)
    searched = "simulated_s" in next(iter(before.values()))
    rows = []
    for job, old in before.items():
        if job not in after:
            rows.append((job, "missing", answered(old), "", True))
            continue
        found = searched_differences(old, after[job]) if searched else simulated_differences(old, after[job])
        rows += [(job, *difference) for difference in found]
    for job, what, old, new, counts in rows:
        print(f"{'' if counts else '('}{what}: {job}\n    before {old}\n    after  {new}{'' if counts else ')'}")
    if listed:
        with open(listed, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([("job", "what", "before", "after"), *(row[:4] for row in rows)])
    if searched:
        both = [(row, after[job]) for job, row in before.items() if job in after and row["simulated_s"] and after[job]["simulated_s"]]
        times = [float(new["simulated_s"]) / float(old["simulated_s"]) for old, new in both]
        longer = [float(new["cpu_s"]) / max(0.01, float(old["cpu_s"])) for old, new in both]
        if both:
            print(f"winners: mean x{sum(times) / len(times):.5f}, worst x{max(times):.4f}; CPU: mean x{sum(longer) / len(longer):.2f}, worst x{max(longer):.2f}")
    else:
        for what, count in collections.Counter(row[1] for row in rows).most_common():
            print(f"{count:5} {what}")
    differ = len({row[0] for row in rows if row[4]})
    print(f"{len(before)} jobs, {differ} differ")
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "search", "compare"])
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--share", type=float, default=1.0, help="of the jobs of every kind")
    parser.add_argument("--list", metavar="FILE", help="compare: write job, what, before, after as CSV")
    args = parser.parse_args()
    if args.what == "compare":
        return compare(args.first, args.second, args.list)
    if args.what == "simulate":
        simulate(args.first, args.second, args.share)
    else:
        search(args.first, args.second)
    return 0


if __name__ == "__main__":
    sys.exit(main())

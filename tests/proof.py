#!/usr/bin/env python3
"""Runs the slow tests one after another, and writes what they showed into docs/testing.md.

tests/proof.py             runs every step; takes many hours
tests/proof.py STEP...     runs these steps, and keeps the rows of the others
tests/proof.py --list      lists the steps

A step that fails leaves the page as it is, and the program exits with code 1.
"""

import datetime
import pathlib
import re
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "testing.md"
BEGIN, END = "<!-- begin figures -->\n", "<!-- end figures -->\n"
HEADER = "| step | shown | command | CPU | date, commit |\n|---|---|---|---|---|\n"

# The name of a step, what it shows if it passes, and its command. `{passed}` is the number of tests that passed,
# `{line}` the last line of the output.
STEPS = [
    ("tests", "{passed} tests passed", "cargo test"),
    ("postgres", "{passed} stories passed with a PostgreSQL ledger", "STORIES_OVER=postgres cargo test --test stories"),
    ("worlds", "100,000 simulated worlds without a fault", "cargo test --lib simulation -- --ignored"),
    ("kills", "10,000 SIGKILLs without a fault", "cargo test --test stories recovery::kills -- --ignored"),
    ("worker-kills", "500 SIGKILLs of workers without a fault", "cargo test --test stories workers::kills -- --ignored"),
    ("databases", "100 database kills, 10 suspended machines, and a broken connection at each message, without a fault",
     "cargo test --test stories shared -- --ignored"),
    ("flips", "3,000 flipped bits without a fault", "cargo test --test stories flips -- --ignored"),
    ("traced", "no request before the fsync of its intent", "cargo test --test stories traced -- --ignored"),
    ("cut", "no false conclusion from a response that is cut off after any byte",
     "cargo test --test stories truncated_at_any_byte -- --ignored"),
    ("receipts", "100,000 webhooks per case agree with the journal",
     "cargo test --test stories a_hundred_thousand -- --ignored --test-threads 1"),
    ("crash", "a scheduled run is sent once despite a crash",
     "cargo test --test stories schedules::serving -- --ignored"),
    ("mangled", "600 s of mangled campaign files without a fault",
     "FUZZ_SECONDS=600 cargo test --lib yaml_fuzz -- --ignored"),
    ("fuzz", "{line}", "fuzz/run.py 600"),
    ("judge", "{passed} tests of the judge passed", "python3 -m unittest discover tests/judge"),
    ("soak", "{line}", "cargo build --release && tests/soak.py target/release/campaign"),
    ("mistakes", "every planted mistake was caught", "cargo test --test stories mistakes -- --ignored"),
    ("mutants", "{line}", "tests/mutants.py --sharding round-robin --shard 0/20"),
]


def count_passed(output):
    """The number of tests that passed, by the summaries of cargo and unittest."""
    cargo = sum(int(found) for found in re.findall(r"^test result: ok\. (\d+) passed", output, re.MULTILINE))
    return cargo + sum(int(found) for found in re.findall(r"^Ran (\d+) tests? in", output, re.MULTILINE))


def run_step(name, shown, command):
    """Runs a step, and returns its row. Exits if the step fails or runs no test."""
    print(f"== {name}: {command}", flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, shell=True, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    passed = count_passed(ended.stdout)
    lines = ended.stdout.strip().splitlines()
    if ended.returncode != 0 or (passed == 0 and "{line}" not in shown) or not lines:
        sys.stderr.write(ended.stdout[-20_000:])
        sys.exit(f"proof.py: `{name}` failed: {command}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True, capture_output=True)
    when = f"{datetime.date.today()}, {commit.stdout.strip() or 'unknown'}"
    shown = shown.format(passed=f"{passed:,}", line=lines[-1].strip())
    print(f"   {shown}; {cpu:.0f} s of CPU", flush=True)
    return f"| {name} | {shown} | `{command}` | {cpu:,.0f} s | {when} |\n"


def write_row(name, row):
    """Replaces the row of a step in the page. The rows keep the order of the steps."""
    page = PAGE.read_text(encoding="utf-8")
    start, rest = page.split(BEGIN)
    table, end = rest.split(END)
    rows = {line.split("|")[1].strip(): line + "\n" for line in table.splitlines()[2:]}
    rows[name] = row
    ordered = "".join(rows[step] for step, _, _ in STEPS if step in rows)
    PAGE.write_text(start + BEGIN + HEADER + ordered + END + end, encoding="utf-8")


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(f"{name:14}{command}" for name, _, command in STEPS))
        return
    names = [name for name, _, _ in STEPS]
    unknown = [name for name in arguments if name not in names]
    if unknown:
        sys.exit(f"proof.py: unknown step `{unknown[0]}`; the steps are {', '.join(names)}")
    for name, shown, command in STEPS:
        if not arguments or name in arguments:
            write_row(name, run_step(name, shown, command))


if __name__ == "__main__":
    main(sys.argv[1:])

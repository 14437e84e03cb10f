#!/usr/bin/env python3
"""Plants the mutants of `.cargo/mutants.toml` with cargo-mutants, and prints the score.

tests/mutants.py                        all of them; takes many hours
tests/mutants.py --package PACKAGE      those of one crate
tests/mutants.py --shard 0/20           a part of them; other options of cargo-mutants work as well

A mutant that does not compile is unviable, and one that makes a test run forever is a timeout. Neither counts. Exits
with 1 if fewer than 90 % of the others are caught. The survivors are in `target/mutants.out/missed.txt`.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "target"
GOAL = 90


def main(arguments):
    if {"-h", "--help"} & set(arguments):
        sys.exit(__doc__)
    chosen = arguments if "--package" in arguments else ["--workspace", *arguments]
    OUTPUT.mkdir(exist_ok=True)
    # The colours of a terminal would be in the messages that are compared.
    environment = os.environ | {"CARGO_TERM_COLOR": "never"}
    command = ["cargo", "mutants", "--output", OUTPUT, "--no-shuffle", "--minimum-test-timeout", "60", *chosen]
    ended = subprocess.run(command, cwd=ROOT, env=environment)
    # 2: there are survivors, 3: there are timeouts.
    if ended.returncode not in (0, 2, 3):
        sys.exit("mutants.py: cargo-mutants failed; install it with `cargo install --locked cargo-mutants`")
    outcomes = json.loads((OUTPUT / "mutants.out" / "outcomes.json").read_text(encoding="utf-8"))
    caught, missed = outcomes["caught"], outcomes["missed"]
    if not caught + missed:
        sys.exit("mutants.py: no mutant is viable")
    score = 100 * caught / (caught + missed)
    print(f"{caught:,} of {caught + missed:,} viable mutants were caught ({score:.1f} %), besides "
          f"{outcomes['timeout']:,} timeouts and {outcomes['unviable']:,} unviable ones")
    sys.exit(0 if score >= GOAL else 1)


if __name__ == "__main__":
    main(sys.argv[1:])

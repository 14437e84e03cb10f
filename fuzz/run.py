#!/usr/bin/env python3
"""Searches for inputs that break a property of `fuzz/targets`, with libFuzzer.

fuzz/run.py SECONDS                runs every target for so long, as many at once as the machine has cores
fuzz/run.py SECONDS TARGET...      runs these targets
fuzz/run.py --keep TARGET...       adds to the corpora some of the inputs that earlier searches found

An input that breaks a property, or needs eight seconds of CPU, is kept in `fuzz/crashes/TARGET`, and the program exits
with code 1.
New inputs of a search are in `fuzz/found`, which is not committed. Needs a C++ compiler, and no other toolchain than
that of the product.
"""

import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HOME = pathlib.Path(__file__).resolve().parent
CORPUS, FOUND, CRASHES = HOME / "corpus", HOME / "found", HOME / "crashes"
TARGETS = sorted(folder.name for folder in CORPUS.iterdir())
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HOME / "target"))
# The instrumentation that `cargo fuzz` uses, without a sanitizer: safe Rust needs none, and the stable compiler has it.
INSTRUMENTATION = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
]
# Longer inputs are slower and show nothing new.
MAX_LENGTH = {"backup": 320, "campaign_file": 4096, "recipients": 8192}
# The largest corpus that `--keep` makes, in bytes and inputs, and the largest input.
MAX_BYTES, MAX_INPUTS, MAX_INPUT = 60_000, 130, 1_500
# An input that takes so many seconds is a fault.
SLOW = 8


def build():
    """Builds the fuzzer and returns its path. Build scripts and macros are not instrumented."""
    host = re.search(r"^host: (.*)$", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE)[1]
    environment = os.environ | {"RUSTFLAGS": " ".join(INSTRUMENTATION)}
    command = ["cargo", "build", "--release", "--locked", "--target", host, "--manifest-path", HOME / "Cargo.toml"]
    subprocess.run(command, check=True, env=environment)
    return BUILT / host / "release" / "campaign-fuzz"


def run_fuzzer(program, target, arguments):
    """Runs libFuzzer, and returns its exit code and its messages. Temporary files are kept in memory, if possible."""
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
        environment = os.environ | {"FUZZ_TARGET": target, "TMPDIR": temporary}
        command = [program, "-print_final_stats=1", f"-max_len={MAX_LENGTH.get(target, 2048)}", *arguments]
        ended = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               errors="replace")
    return ended.returncode, ended.stderr


def is_fast(program, target, path):
    """Whether an input that libFuzzer reports as slow needs little CPU time. Then other processes delayed it."""
    def limit_cpu():
        resource.setrlimit(resource.RLIMIT_CPU, (SLOW, SLOW))
    if not path.name.startswith("slow-unit-"):
        return False
    environment = os.environ | {"FUZZ_TARGET": target}
    return subprocess.run([program, path], env=environment, capture_output=True, preexec_fn=limit_cpu).returncode == 0


def search(program, target, seconds):
    """Searches for so long, and returns the number of executions and whether a property broke."""
    for folder in (FOUND / target, CRASHES / target):
        folder.mkdir(parents=True, exist_ok=True)
    known = set((CRASHES / target).iterdir())
    began = time.monotonic()
    code, messages = run_fuzzer(program, target, [
        f"-max_total_time={seconds}", "-timeout=20", f"-report_slow_units={SLOW}",
        "-rss_limit_mb=2048", f"-artifact_prefix={CRASHES / target}/",
        FOUND / target, CORPUS / target,
    ])
    executions = re.search(r"stat::number_of_executed_units: *(\d+)", messages)
    coverage = re.findall(r" cov: (\d+)", messages)
    executions, coverage = int(executions[1]) if executions else 0, coverage[-1] if coverage else "?"
    broken = set((CRASHES / target).iterdir()) - known
    for path in [path for path in broken if is_fast(program, target, path)]:
        path.unlink()
        broken.discard(path)
    lines = [f"{target:14} {executions:>11,} executions in {time.monotonic() - began:6.0f} s, {coverage} places covered"]
    if code != 0 or broken:
        said = [line for line in messages.splitlines() if line.strip() and not re.match(r"#\d+\s", line)]
        lines += ["    " + line[:400] for line in said[-25:]]
        lines += [f"    {path.relative_to(HOME.parent)}" for path in sorted(broken)]
    # In one piece, because other targets print too.
    print("\n".join(lines), flush=True)
    return executions, code != 0 or bool(broken)


def keep(program, target):
    """Adds inputs that reach new places to the corpus, while it is small."""
    with tempfile.TemporaryDirectory() as merged:
        for path in (CORPUS / target).iterdir():
            shutil.copy(path, merged)
        before = set(os.listdir(merged))
        run_fuzzer(program, target, ["-merge=1", merged, FOUND / target])
        added = [pathlib.Path(merged) / name for name in set(os.listdir(merged)) - before]
        size, room = sum(path.stat().st_size for path in (CORPUS / target).iterdir()), MAX_INPUTS - len(before)
        added = sorted((path for path in added if path.stat().st_size <= MAX_INPUT),
                       key=lambda path: (path.stat().st_size, path.name))
        # Of all sizes, so that not only the simplest ones are kept.
        for path in added[::max(1, -(-len(added) // room))] if room > 0 else []:
            size += path.stat().st_size
            if size > MAX_BYTES:
                break
            shutil.copy(path, CORPUS / target / path.name)
    print(f"{target:14} {len(os.listdir(CORPUS / target))} inputs, {size:,} bytes")


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    chosen = arguments[1:] or TARGETS
    unknown = [name for name in chosen if name not in TARGETS]
    if unknown:
        sys.exit(f"run.py: unknown target `{unknown[0]}`; the targets are {', '.join(TARGETS)}")
    if arguments[0] == "--keep":
        program = build()
        for target in chosen:
            keep(program, target)
        return
    if not re.fullmatch(r"[1-9][0-9]*", arguments[0]):
        sys.exit(f"run.py: `{arguments[0]}` is not a number of seconds")
    seconds, program = int(arguments[0]), build()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as cores:
        searched = list(cores.map(lambda target: search(program, target, seconds), chosen))
    executions, broken = sum(count for count, _ in searched), sum(broke for _, broke in searched)
    print(f"fuzzed {len(chosen)} targets for {seconds} s each: {executions:,} executions, {broken} properties broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main(sys.argv[1:])

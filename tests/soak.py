#!/usr/bin/env python3
"""A day of `campaign serve` in SECONDS, with schedules, receipts, workers and kills. Needs Linux and a C compiler.

tests/soak.py PROGRAM [SECONDS]     default: 3600; at least 960

The clock of all processes jumps to the end of each hour, as if their machine slept. In each hour, a scheduled run and a
run that workers share send messages to new numbers through a sandbox, and receipts arrive. In the first eight hours,
the server is killed with SIGKILL while it sends; a worker is killed in every hour. Then the test fails if

- the memory or the open files of the server grew during the last sixteen hours,
- the results, `campaign status` and the API of the server count other rows in a state,
- the judge (tests/judge) finds a message that is lost, doubled, misattributed or falsely reported.
"""

import csv
import collections
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOURS, HOURS_WITH_KILLS = 24, 8
SCHEDULED_ROWS, SHARED_ROWS = 60, 120
# Before each full hour, in seconds.
BEFORE = 6
# How much the later half of the hours without kills may exceed the earlier half.
MEMORY_FACTOR, MEMORY_SLACK_KIB, FILES_SLACK = 1.10, 8 * 1024, 4
SCENARIO = """speed: 120
channels: { sms: { delivered: 90%% } }
webhooks: { retry: [%s] }
faults:
  - { when: { share: 5%% }, webhook: twice }
  - { when: { share: 5%% }, webhook: late, by: 3m }
""" % ", ".join(["20s"] * 20)
CAMPAIGN = """timezone: UTC
gateway: local
{schedule}recipients: {{ file: {name}.csv }}
delivery: {{ rate: 60/s, batch: 10 }}
channels:
  - sms: {{ signature: OlenaCo, message: "{{{{ name }}}}, it is {{{{ today }}}}" }}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class World:
    """A folder with campaigns, a gateway and the processes of an operator."""

    def __init__(self, program, folder):
        self.program, self.folder, self.numbers, self.shared = program, folder, 0, 0
        self.port = free_port()
        library = folder / "clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, ROOT / "tests/support/clock.c", "-ldl"], check=True)
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "LD_PRELOAD": str(library),
            "CLOCK_FILE": str(folder / "ahead"), "CAMPAIGN_STATE_DIR": str(folder / "state"), "CAMPAIGN_KEY": "sandbox",
        }
        self.ahead = 0
        self.journal = folder / "journal.jsonl"
        (folder / "scenario.yaml").write_text(SCENARIO)
        self.sandbox = self.start("sandbox", "--listen", "127.0.0.1:0", "--journal", self.journal, "--scenario",
                                  "scenario.yaml", "--json")
        url = json.loads(self.sandbox.stdout.readline())["base_url"]
        (folder / "gateways.yaml").write_text(
            f"local:\n  base_url: {url}\n  async_url: {url}\n  api_key: {{ env: CAMPAIGN_KEY }}\n  rate: 200/s\n"
            f"  hook: {{ public_url: http://127.0.0.1:{self.port}, secret: {{ file: hook.secret }} }}\n")
        for name in ("hook.secret", "token"):
            (folder / name).write_text("s" * 40 + "\n")
            (folder / name).chmod(0o600)
        schedule = 'schedule: { cron: "0 * * * *" }\n'
        (folder / "hourly.yaml").write_text(CAMPAIGN.format(name="hourly", schedule=schedule))
        self.write_list("hourly", SCHEDULED_ROWS)

    def start(self, *arguments):
        """Starts the program, and keeps its messages in a file."""
        with open(self.folder / f"{arguments[0]}.log", "ab") as log:
            return subprocess.Popen([self.program, *arguments], cwd=self.folder, env=self.environment, text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)

    def call(self, *arguments, codes=(0,)):
        """Runs the program to its end, and returns its output."""
        ended = subprocess.run([self.program, *arguments], cwd=self.folder, env=self.environment, text=True,
                               stdin=subprocess.DEVNULL, capture_output=True)
        if ended.returncode not in codes:
            sys.exit(f"soak.py: `{' '.join(map(str, arguments))}` ended with {ended.returncode}: {ended.stdout}"
                     f"{ended.stderr}")
        return ended.stdout

    def serve(self):
        """Starts the server, and waits until it listens."""
        server = self.start("serve", "--listen", "127.0.0.1:0", "--hooks", f"127.0.0.1:{self.port}", "--token-file",
                            "token", "--json")
        self.listening = json.loads(server.stdout.readline())
        return server

    def write_list(self, name, rows):
        """Replaces a list by one with new numbers, at once."""
        new = self.folder / f".{name}.part"
        with open(new, "w", encoding="utf-8") as lines:
            lines.write("phone,name\n")
            for _ in range(rows):
                lines.write(f"{380501000000 + self.numbers},Person {self.numbers}\n")
                self.numbers += 1
        os.replace(new, self.folder / f"{name}.csv")

    def move_clock_before_hour(self):
        """Moves the clock of all processes to shortly before the next full hour."""
        now = time.time() + self.ahead
        self.ahead += int((3600 - BEFORE - now) % 3600)
        new = self.folder / ".ahead.part"
        new.write_text(str(self.ahead))
        os.replace(new, self.folder / "ahead")

    def start_shared_run(self):
        """Starts a run for the workers."""
        self.shared += 1
        name = f"shared-{self.shared}"
        (self.folder / f"{name}.yaml").write_text(CAMPAIGN.format(name=name, schedule=""))
        self.write_list(name, SHARED_ROWS)
        return self.start("run", f"{name}.yaml", "--shared", "--no-wait", "--yes", "--json")


class Meter(threading.Thread):
    """Measures the memory and the open files of the server once a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server, self.hour, self.samples = None, 0, []

    def run(self):
        while True:
            server = self.server
            if server is not None and server.poll() is None:
                try:
                    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
                    files = len(os.listdir(f"/proc/{server.pid}/fd"))
                except OSError:
                    continue
                resident = int(re.search(r"^VmRSS:\s*(\d+)", status, re.MULTILINE)[1])
                self.samples.append((self.hour, server.pid, resident, files))
            time.sleep(1)

    def describe_hour(self, hour):
        """The medians of an hour."""
        of_hour = [sample for sample in self.samples if sample[0] == hour]
        return tuple(int(statistics.median(column)) for column in list(zip(*of_hour))[2:]) if of_hour else (0, 0)


def live_through(world, seconds):
    """Plays the hours. Returns the server and the meter."""
    chance, meter = random.Random(int(os.environ.get("SOAK_SEED", "1"))), Meter()
    world.move_clock_before_hour()
    world.call("schedule", "add", "hourly.yaml", "--yes")
    meter.server = server = world.serve()
    workers = [world.start("worker", "--json") for _ in range(2)]
    meter.start()
    kills = 0
    for hour in range(HOURS):
        meter.hour, ends = hour, time.monotonic() + seconds / HOURS
        if hour:
            world.write_list("hourly", SCHEDULED_ROWS)
            world.move_clock_before_hour()
        run = world.start_shared_run()
        time.sleep(BEFORE + chance.uniform(1, 12))
        if hour < HOURS_WITH_KILLS:
            server.kill()
            server.wait()
            meter.server = server = world.serve()
            kills += 1
        victim = chance.randrange(len(workers))
        workers[victim].kill()
        workers[victim].wait()
        workers[victim] = world.start("worker", "--json")
        kills += 1
        code = run.wait(timeout=600)
        if code not in (0, 3, 4):
            sys.exit(f"soak.py: a shared run ended with {code}: {run.stdout.read()}")
        time.sleep(max(0, ends - time.monotonic()))
        memory, files = meter.describe_hour(hour)
        print(f"hour {hour + 1:2}: {memory / 1024:6.1f} MiB, {files} open files", flush=True)
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=60)
    return server, meter, kills


def check_growth(meter):
    """Compares the two halves of the hours without kills."""
    middle = (HOURS + HOURS_WITH_KILLS) // 2
    steady = [sample for sample in meter.samples if sample[0] >= HOURS_WITH_KILLS]
    if len({pid for _, pid, _, _ in steady}) > 1 and len({pid for hour, pid, _, _ in steady
                                                          if hour > HOURS_WITH_KILLS}) != 1:
        sys.exit("soak.py: the server ended by itself")
    halves = [[sample for sample in steady if sample[0] < middle], [sample for sample in steady if sample[0] >= middle]]
    (memory, files), (later_memory, later_files) = (
        (statistics.median(s[2] for s in half), statistics.median(s[3] for s in half)) for half in halves)
    if later_memory > memory * MEMORY_FACTOR + MEMORY_SLACK_KIB:
        sys.exit(f"soak.py: the memory grew from {memory:,.0f} to {later_memory:,.0f} KiB")
    if later_files > files + FILES_SLACK:
        sys.exit(f"soak.py: the open files grew from {files:.0f} to {later_files:.0f}")
    return memory, later_memory, files, later_files


def count_states(path):
    """The rows of a results file by state."""
    with open(path, encoding="utf-8", newline="") as lines:
        return dict(collections.Counter(row["state"] for row in csv.DictReader(lines)))


def read_api(world):
    """The runs as the server shows them, by name."""
    address = world.listening["listen"]
    request = urllib.request.Request(f"http://{address}/api/runs", headers={"Authorization": "Bearer " + "s" * 40})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {run["run"]: run for run in json.load(answer)["runs"]}


def states_of(counts):
    """The states of a `counts` object, without sums."""
    return {state: rows for state, rows in counts.items() if state != "delivered_or_read" and rows}


def check_counters(world):
    """Compares the results of every run with `status` and the API. Returns the number of runs and rows."""
    listed = json.loads(world.call("status", "--all", "--json", codes=(0, 3, 4, 5)))
    status = {run["run"]: run for run in listed["runs"]}
    rows, api = 0, read_api(world)
    if not status:
        sys.exit("soak.py: there are no runs")
    for name, run in status.items():
        results = world.folder / "checked" / f"{name}.csv"
        results.parent.mkdir(exist_ok=True)
        world.call("results", name, "--out", results, codes=(0, 3, 4, 5))
        counts = count_states(results)
        rows += sum(counts.values())
        for surface, shown in (("status", run["counts"]), ("the API", api[name]["counts"])):
            if states_of(shown) != counts:
                sys.exit(f"soak.py: {name}: {surface} shows {states_of(shown)}, the results contain {counts}")
    return len(status), rows


def judge(world):
    """Runs the judge, which must find no fault. Returns its first line."""
    results = sorted((world.folder / "checked").glob("*.csv"))
    command = [sys.executable, ROOT / "tests/judge/judge.py", *results, "--journal", world.journal, "--exclusive"]
    ended = subprocess.run(command, text=True, capture_output=True)
    if ended.returncode != 0:
        sys.exit(f"soak.py: the judge disagrees:\n{ended.stdout}{ended.stderr}")
    return ended.stdout.splitlines()[0]


def main(arguments):
    if not 1 <= len(arguments) <= 2 or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    program, seconds = pathlib.Path(arguments[0]).resolve(), int(arguments[1]) if len(arguments) == 2 else 3600
    with tempfile.TemporaryDirectory() as folder:
        world = World(program, pathlib.Path(folder))
        try:
            server, meter, kills = live_through(world, seconds)
            memory, later_memory, files, later_files = check_growth(meter)
            # The last receipts arrive.
            time.sleep(10)
            runs, rows = check_counters(world)
            server.send_signal(signal.SIGTERM)
            if server.wait(timeout=60) != 0:
                sys.exit("soak.py: the server did not end well")
            print(judge(world))
            print(f"24 h in {seconds:,} s: {runs} runs with {rows:,} rows, {kills} kills; memory of the server "
                  f"{memory / 1024:.1f}, later {later_memory / 1024:.1f} MiB, open files {files:.0f}, later "
                  f"{later_files:.0f}; all counters agree")
        finally:
            world.sandbox.kill()


if __name__ == "__main__":
    main(sys.argv[1:])

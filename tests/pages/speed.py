#!/usr/bin/env python3
"""Measures the pages of `campaign serve`: the overview with many runs, the page of a large run, and its live parts.

tests/pages/speed.py PROGRAM [ROWS] [RUNS] [ROUNDS]

PROGRAM is a built `campaign`, with optimization for figures that mean anything. ROWS is the number of recipients of the
large run (default 1,000,000), RUNS the number of small runs (default 1,000), and ROUNDS how often each page is measured
with a server that was just started (default 5). The gateway is `campaign sandbox`. All files are in a temporary folder
that is removed at the end. The script fails if a limit is exceeded.
"""

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlsplit

PAGE_LIMIT_MS = 300
FRAGMENT_LIMIT_MS = 20
SIZE_LIMIT_KB = 120
CAMPAIGNS = 20

program = os.path.realpath(sys.argv[1])
rows, runs, rounds = (int(value) for value in (sys.argv[2:] + ["1000000", "1000", "5"][len(sys.argv) - 2 :])[:3])
servers = []


def start(*arguments):
    """Starts a server, and returns it with the object that it prints."""
    server = subprocess.Popen([program, *arguments, "--listen", "127.0.0.1:0", "--json"], stdout=subprocess.PIPE)
    servers.append(server)
    return server, json.loads(server.stdout.readline())


def stop(server):
    server.terminate()
    server.wait(30)


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def write_campaign(name, recipients, edition=""):
    with open(f"{name}.csv", "w", encoding="utf-8") as file:
        file.write("phone,name\n")
        file.writelines(f"+38050{row:07},Person {row}\n" for row in range(recipients))
    sms = '{ signature: OlenaCo, message: "Hello, {{ name }}" }'
    write(
        f"{name}.yaml",
        f"gateway: local\n{edition}recipients: {{ file: {name}.csv }}\nchannels:\n  - sms: {sms}\n"
        "delivery: { rate: unlimited }\n",
    )


def run_command(*arguments):
    ended = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 3):
        sys.exit(f"{' '.join(arguments)}: {ended.stdout}{ended.stderr}")
    return ended.stdout


class Session:
    """A browser that is signed in to a server that was just started."""

    def __init__(self, address):
        self.address = urlsplit(address)
        self.cookie = None
        # As the button of the sign-in page does.
        _, headers, _ = self.request("POST", self.address.path, {"Origin": f"http://{self.address.netloc}"})
        self.cookie = headers["set-cookie"].split(";")[0]

    def get(self, path):
        return self.request("GET", path, {})

    def request(self, method, path, headers):
        connection = http.client.HTTPConnection(self.address.netloc, timeout=60)
        headers = headers | {"Accept": "text/html"}
        if self.cookie:
            headers["Cookie"] = self.cookie
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    def measure(self, path):
        """The milliseconds until a page is complete, and the page."""
        began = time.perf_counter()
        status, _, body = self.get(path)
        took = (time.perf_counter() - began) * 1000
        if status != 200:
            sys.exit(f"{path}: {status}")
        return took, body

    def first_event(self, path):
        """The milliseconds until the first live parts of a page, and their size."""
        connection = http.client.HTTPConnection(self.address.netloc, timeout=60)
        began = time.perf_counter()
        connection.request("GET", path, headers={"Cookie": self.cookie, "Accept": "text/event-stream"})
        response, size = connection.getresponse(), 0
        while True:
            line = response.readline()
            size += len(line)
            if line.strip() == b"" and size > 200:
                break
        took = (time.perf_counter() - began) * 1000
        connection.close()
        return took, size


def new_session():
    """Starts `serve`, and signs in."""
    server, listening = start("serve")
    return server, Session(listening["url"])


def main():
    os.environ["CAMPAIGN_SANDBOX_KEY"] = "sandbox"
    os.environ["CAMPAIGN_STATE_DIR"] = os.path.abspath("state")
    os.mkdir("state", 0o700)
    _, sandbox = start("sandbox")
    base = sandbox["base_url"]
    key = "{ env: CAMPAIGN_SANDBOX_KEY }"
    write(
        "gateways.yaml",
        f'local: {{ base_url: "{base}", async_url: "{base}", api_key: {key}, rate: unlimited, currency: UAH, '
        "prices: { sms: 1.25 } }\n",
    )
    began = time.perf_counter()
    for number in range(runs):
        write_campaign(f"small-{number % CAMPAIGNS}", 20, f"edition: e{number}\n")
        run_command("run", f"small-{number % CAMPAIGNS}.yaml", "-y", "-q")
    write_campaign("large", rows)
    run_command("run", "large.yaml", "-y", "-q")
    print(f"{runs} runs to 20 recipients, and one to {rows}; made in {time.perf_counter() - began:.0f} s\n")

    figures = {name: [] for name in ("overview", "runs", "run page", "overview, warm", "run page, warm", "fragment")}
    for _ in range(rounds):
        for name, path in (("overview", "/"), ("runs", "/runs"), ("run page", "/runs/large@1")):
            server, session = new_session()
            took, page = session.measure(path)
            figures[name].append((took, len(page)))
            if name == "overview":
                sheets = re.findall(r'href="(/static/[^"]+\.css)"', page.decode())
                size = sum(len(session.get(sheet)[2]) for sheet in sheets)
                figures["overview, warm"].append((session.measure(path)[0], len(page)))
            if name == "run page":
                figures["run page, warm"].append((session.measure(path)[0], len(page)))
                figures["fragment"].append(session.first_event("/runs/large@1/live"))
            stop(server)

    print(f"{'':<18}{'median ms':>10}{'worst ms':>10}{'kB':>8}{'kB with style':>15}")
    failed = []
    for name, measured in figures.items():
        times, sizes = [took for took, _ in measured], [length for _, length in measured]
        whole = (max(sizes) + size) / 1000
        print(f"{name:<18}{statistics.median(times):>10.1f}{max(times):>10.1f}{max(sizes) / 1000:>8.1f}{whole:>15.1f}")
        limit = FRAGMENT_LIMIT_MS if name == "fragment" else PAGE_LIMIT_MS
        if statistics.median(times) > limit:
            failed.append(f"{name}: more than {limit} ms")
        if name != "fragment" and whole > SIZE_LIMIT_KB:
            failed.append(f"{name}: more than {SIZE_LIMIT_KB} kB")
    if failed:
        sys.exit("; ".join(failed))


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    try:
        main()
    finally:
        for one in servers:
            if one.poll() is None:
                one.kill()
                one.wait()
        os.chdir("/")

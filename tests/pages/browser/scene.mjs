// Test setup: a folder with campaigns, the sandbox as their gateway, and a dashboard server.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const PROGRAM = process.env.PROGRAM;
/** Number of valid recipients per list. Each list has one more, invalid row. */
export const PEOPLE = 160;
const NAMES = ["Olia", "Taras", "Iryna", "Bohdan", "Daryna", "Ostap", "Solomiia", "Marko"];

/** Runs a command and returns its exit code and output. */
export function campaign(...args) {
  const ended = spawnSync(PROGRAM, args, { encoding: "utf8" });
  return { code: ended.status, out: ended.stdout, all: ended.stdout + ended.stderr };
}

/** Runs a command with `--json`, which must exit with one of these codes. Returns the object. */
export function runJson(codes, ...args) {
  const ended = campaign(...args, "--json");
  if (!codes.includes(ended.code)) throw new Error(`${args.join(" ")}: ${ended.all}`);
  return JSON.parse(ended.out);
}

/** How the gateway delivers messages: most by Viber, some by SMS, and a few not at all. */
const SCENARIO = `seed: 2026
channels:
  viber: { delivered: 62%, after: 1s, read: 70%, read_after: 2s }
  sms: { delivered: 93%, after: 1s, fails_as: UNDELIVERABLE }
faults:
  - { when: { suffix: "13" }, item_error: No route to this number }
`;

const running = [];

/** Starts a server and returns the object that it prints. */
async function serve(...args) {
  const server = spawn(PROGRAM, [...args, "--listen", "127.0.0.1:0", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  running.push(server);
  const lines = createInterface({ input: server.stdout });
  for await (const line of lines) return JSON.parse(line);
  throw new Error(`${args[0]} ended before it listened`);
}

/** Starts a run and returns a promise of its exit code. */
export function begin(file) {
  const run = spawn(PROGRAM, ["run", file, "-y"], { stdio: "ignore" });
  running.push(run);
  return new Promise((ended) => run.on("exit", ended));
}

/** Kills all processes that were started here. */
export function end() {
  for (const process of running) process.kill("SIGKILL");
}

/** Writes a campaign with `rate` messages a second: Viber, with SMS as the fallback. */
function write(name, rate) {
  const rows = Array.from({ length: PEOPLE }, (_, n) => {
    const last = String(n).padStart(4, "0");
    return `+38050123${last},${NAMES[n % NAMES.length]},AUTUMN-${last},${(n * 7) % 40 || ""}`;
  });
  writeFileSync(`${name}.csv`, ["phone,name,code,discount", ...rows, "12,Nobody,X,1"].join("\n"));
  writeFileSync(
    `${name}.yaml`,
    `gateway: local
title: ${name[0].toUpperCase()}${name.slice(1)} offers
recipients: { file: ${name}.csv }
channels:
  - viber:
      signature: OlenaCo
      message: |
        {{ name }}, autumn begins with {% if discount %}{{ discount }} %{% else %}a present{% endif %} off.
        https://shop.example/?c={{ code }}
      image: https://shop.example/autumn.png
      button: To the shop
      link: "https://shop.example/?c={{ code }}"
      lifetime: 5m
  - sms:
      signature: OlenaCo
      message: "{{ name }}, осінь починається зі знижки: https://shop.example/?c={{ code }}"
delivery: { batch: 10, rate: ${rate}/s, in_flight: 2 }
`,
  );
}

/** Sets everything up. Returns the sign-in link and the origin of the dashboard. */
export async function setUp() {
  mkdirSync("state", { recursive: true });
  writeFileSync("scenario.yaml", SCENARIO);
  const sandbox = await serve("sandbox", "--scenario", "scenario.yaml");
  const base = sandbox.base_url ?? sandbox.url;
  writeFileSync(
    "gateways.yaml",
    `local: { base_url: "${base}", async_url: "${base}", api_key: { env: CAMPAIGN_SANDBOX_KEY }, rate: unlimited, currency: UAH, prices: { viber: 0.85, sms: 1.25 } }\n`,
  );
  process.env.CAMPAIGN_SANDBOX_KEY = "sandbox";
  process.env.CAMPAIGN_STATE_DIR = `${process.cwd()}/state`;
  write("autumn", 200);
  write("slow", 12);
  write("stopped", 12);
  writeFileSync("weekly.yaml", readFileSync("slow.yaml", "utf8") + 'timezone: Europe/Kyiv\nschedule: { every: "Mon 10:00" }\n');
  campaign("schedule", "add", "weekly.yaml", "-y");
  writeFileSync("testers.csv", "phone\n+380671234567\n+380671234568\n");
  const server = await serve("serve", "--test-to", "testers.csv");
  return { url: server.url, origin: new URL(server.url).origin };
}

/** Returns the row counts of a run by state. */
export function resultsOf(run) {
  const [head, ...rows] = campaign("results", run, "--out", "-").out.trim().split(/\r?\n/);
  const state = head.split(",").indexOf("state");
  const counts = {};
  for (const row of rows) {
    const word = row.split(",")[state];
    counts[word] = (counts[word] ?? 0) + 1;
  }
  return counts;
}


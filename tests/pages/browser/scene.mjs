// A folder with campaigns, the sandbox as their gateway, and a server with pages.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const PROGRAM = process.env.PROGRAM;
/** How many people the campaigns go to; one more cannot be reached. */
export const PEOPLE = 160;
const NAMES = ["Olia", "Taras", "Iryna", "Bohdan", "Daryna", "Ostap", "Solomiia", "Marko"];

/** Runs a command to its end, and returns what it printed. */
export function campaign(...args) {
  const ended = spawnSync(PROGRAM, args, { encoding: "utf8" });
  return { code: ended.status, out: ended.stdout, told: ended.stdout + ended.stderr };
}

/** The same with JSON, which has to end with one of these codes. */
export function told(codes, ...args) {
  const ended = campaign(...args, "--json");
  if (!codes.includes(ended.code)) throw new Error(`${args.join(" ")}: ${ended.told}`);
  return JSON.parse(ended.out);
}

const running = [];

/** Starts a server, and returns what it says of itself. */
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

/** Ends what was started here. */
export function end() {
  for (const process of running) process.kill("SIGKILL");
}

/** A campaign of so many messages a second: Viber, and SMS for whoever has none. */
function write(name, rate) {
  const rows = Array.from({ length: PEOPLE }, (_, n) => {
    const last = String(n).padStart(4, "0");
    return `+38050123${last},${NAMES[n % NAMES.length]},AUTUMN-${last},${(n * 7) % 40 || ""}`;
  });
  writeFileSync(`${name}.csv`, ["phone,name,code,discount", ...rows, "12,Nobody,X,1"].join("\n"));
  writeFileSync(
    `${name}.yaml`,
    `gateway: local
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

/** Sets everything up; returns the address that lets somebody in, and who decides. */
export async function setUp() {
  mkdirSync("state", { recursive: true });
  const sandbox = await serve("sandbox");
  const base = sandbox.base_url ?? sandbox.url;
  writeFileSync(
    "gateways.yaml",
    `local: { base_url: "${base}", async_url: "${base}", api_key: { env: CAMPAIGN_SANDBOX_KEY }, rate: unlimited }\n`,
  );
  process.env.CAMPAIGN_SANDBOX_KEY = "sandbox";
  process.env.CAMPAIGN_STATE_DIR = `${process.cwd()}/state`;
  write("autumn", 200);
  write("slow", 12);
  write("stopped", 12);
  writeFileSync("weekly.yaml", readFileSync("slow.yaml", "utf8") + 'timezone: Europe/Kyiv\nschedule: { every: "Mon 10:00" }\n');
  campaign("schedule", "add", "weekly.yaml", "-y");
  const server = await serve("serve");
  return { url: server.url, origin: new URL(server.url).origin };
}

/** The results of a run, by state. */
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


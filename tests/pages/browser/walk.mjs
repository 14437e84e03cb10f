// Visits all pages in headless Chromium and prints what is wrong with them.
import puppeteer from "puppeteer-core";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { PEOPLE, begin, campaign, end, resultsOf, runJson, setUp } from "./scene.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PICTURES = process.env.PICTURES;
/** Sources that no content security policy may allow: inline content and other servers. */
const UNSAFE = /unsafe-|data:|https?:|\*/;

/** Exit codes of a finished run; one row of each list is invalid. */
const FINISHED = [0, 3];

/** Whether refused requests are expected. Browsers log them as errors. */
let refusals = false;

let wrong = 0;
function check(holds, what) {
  if (holds) return;
  wrong += 1;
  console.error(`✗ ${what}`);
}

/** Reports errors, warnings and requests to other origins on a page. */
function watch(page, origin) {
  page.on("console", (message) => {
    const expected = refusals && /40[34]|422/.test(message.text());
    check(expected || !["error", "warn"].includes(message.type()), `${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => check(false, `${page.url()}: ${error}`));
  page.on("requestfailed", (request) => {
    // Leaving a page cuts its event stream.
    if (!request.url().endsWith("/live")) check(false, `${request.url()} failed: ${request.failure()?.errorText}`);
  });
  page.on("request", (request) => check(request.url().startsWith(origin), `${page.url()} loads ${request.url()}`));
}

/** Reports all findings of axe-core. */
async function accessible(page, name) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, impact, nodes } of found.violations) {
    check(false, `${name}: ${id} (${impact}) ${nodes.map((node) => node.html).join("\n    ")}`);
  }
}

/** Checks a page wide and narrow, light and dark. */
async function inspect(page, name) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of [1920, 1280, 390]) {
      await page.setViewport({ width, height: 900 });
      await accessible(page, `${name}, ${width} wide, ${scheme}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= width, `${name} is ${wide} wide on a screen of ${width}`);
      if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}-${width}-${scheme}.png`, fullPage: true });
      if (PICTURES && width === 1280 && scheme === "light") await page.screenshot({ path: `${PICTURES}/${name}.png` });
    }
  }
}

/** Opens a page of the server and checks its content security policy. */
async function open(page, url) {
  const response = await page.goto(url, { waitUntil: "load" });
  const policy = response.headers()["content-security-policy"] ?? "";
  check(policy.includes("default-src 'self'") && !UNSAFE.test(policy), `${url} has the policy \`${policy}\``);
  return response;
}

/** Returns the row counts by state that a run's page shows. */
const shown = (page) =>
  page.$$eval("#counts .count", (counts) =>
    Object.fromEntries(
      counts
        .map((count) => [count.className.match(/count-(\S+)/)[1], Number(count.querySelector(".count-rows").textContent.replace(/\D/g, ""))])
        .filter(([, rows]) => rows > 0),
    ),
  );

const sentence = (page) => page.$eval("[data-sentence]", (element) => element.textContent.trim());

/** Waits until a condition holds, for at most one minute. */
async function until(what, holds) {
  const since = Date.now();
  while (!(await holds())) {
    if (Date.now() - since > 60_000) throw new Error(`timed out after one minute: ${what}`);
    await new Promise((later) => setTimeout(later, 100));
  }
}

/** The page of a live run updates without a reload and ends with the numbers of the results. */
async function followsARun(page, origin) {
  const ended = begin("slow.yaml");
  await until("the run is there", () => campaign("status", "slow").all.includes("slow@1"));
  await open(page, `${origin}/runs/slow@1`);
  await page.evaluate(() => (window.stayed = true));
  const seen = new Set();
  await until("three sentences", async () => seen.add(await sentence(page)).size >= 3);
  await inspect(page, "run-live");
  check(FINISHED.includes(await ended), "the run ends well");
  const results = resultsOf("slow@1");
  await until("the page is at the end", async () => JSON.stringify(await shown(page)) === JSON.stringify(inOrder(await shown(page), results)));
  check(await page.evaluate(() => window.stayed), "the page was not reloaded");
  const counts = await shown(page);
  check(Object.values(counts).reduce((sum, rows) => sum + rows, 0) === PEOPLE + 1, `the page shows all rows: ${JSON.stringify(counts)}`);
}

/** Returns these counts in the order of others. */
function inOrder(order, counts) {
  return Object.fromEntries(Object.keys({ ...order, ...counts }).map((state) => [state, counts[state] ?? 0]));
}

/** Stop is available only to visitors who can decide, and a page of ours asks for confirmation. */
async function stopsARun(page, other, origin) {
  const ended = begin("stopped.yaml");
  await until("the run is sent", () => campaign("status", "stopped@1", "--json").out.includes('"state":"sending"'));
  await open(other, `${origin}/runs/stopped@1`);
  check((await other.$("a[href$='/stop']")) === null, "a viewer has no Stop button");
  await until("the overview shows what is being sent", async () => {
    await open(page, `${origin}/`);
    return (await page.$$(".running")).length === 1;
  });
  await open(page, `${origin}/runs/stopped@1`);
  page.once("dialog", () => check(false, "the browser asks"));
  // Click without scrolling: live updates replace the button's part of the page meanwhile.
  await Promise.all([page.waitForNavigation(), page.$eval("a[href$='/stop']", (link) => link.click())]);
  check(campaign("status", "stopped@1", "--json").out.includes('"state":"sending"'), "the confirmation stops nothing");
  await inspect(page, "confirm");
  await Promise.all([page.waitForNavigation(), page.$eval(".confirm button", (button) => button.click())]);
  check(page.url().endsWith("?done=stop"), `the run is stopped: ${page.url()}`);
  check(!FINISHED.includes(await ended), "the run stops");
  await until("a stopped run needs attention", async () => {
    await open(page, `${origin}/`);
    return (await page.$$eval(".attention", (alerts) => alerts.map((alert) => alert.textContent).join())).includes("stopped@1");
  });
}

/** A failed search keeps its text, and a missing page offers a way on. */
async function helpsToFind(page, origin) {
  await open(page, `${origin}/runs`);
  refusals = true;
  await page.type("#wanted", "no such thing");
  await Promise.all([page.waitForNavigation(), page.$eval(".search", (form) => form.requestSubmit())]);
  check((await page.$eval("#wanted", (field) => field.value)) === "no such thing", "the search keeps its text");
  await inspect(page, "search");
  await open(page, `${origin}/runs/autumn@99`);
  check((await page.$$("main a")).length >= 6, "a missing page links to the sections");
  await inspect(page, "missing");
  refusals = false;
}

/** Opens a sign-in link, which only the button of its page uses. */
async function signIn(page, link) {
  await open(page, link);
  await inspect(page, "sign-in");
  await Promise.all([page.waitForNavigation(), page.$eval(".confirm button", (button) => button.click())]);
  await page.waitForFunction(() => location.pathname === "/");
}

/** Forms from another origin or without a CSRF token are refused. */
async function refusesOthers(page, origin) {
  await open(page, `${origin}/opt-outs`);
  const token = await page.$eval("form[action='/opt-outs/add'] input[name=form]", (field) => field.value);
  refusals = true;
  for (const form of ["", "guessed"]) {
    const status = await page.evaluate(
      async (form) => (await fetch("/opt-outs", { method: "POST", body: new URLSearchParams({ form, phone: "+380501230001" }) })).status,
      form,
    );
    check(status === 403, `a form with the token \`${form}\` is refused: ${status}`);
  }
  // A page on another port of this machine, which browsers treat as the same site.
  const elsewhere = createServer((_, answer) => {
    answer.setHeader("Content-Type", "text/html");
    answer.end(`<form method="post" action="${origin}/opt-outs"><input name="form" value="${token}"><input name="phone" value="+380501230001"></form>`);
  });
  await new Promise((listens) => elsewhere.listen(0, "127.0.0.1", listens));
  const foreign = await page.browserContext().newPage();
  await foreign.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  const [answer] = await Promise.all([foreign.waitForNavigation(), foreign.$eval("form", (form) => form.submit())]);
  check(answer.status() === 403, `a form of another origin is refused: ${answer.status()}`);
  elsewhere.close();
  elsewhere.closeAllConnections();
  await foreign.close();
  refusals = false;
  check(!campaign("suppress", "list").out.includes("380501230001"), "no opt-out was added");
}

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"], headless: true });
try {
  const { url, origin } = await setUp();
  check(FINISHED.includes(await begin("autumn.yaml")), "a run ends well");
  await until("the delivery statuses are known", () => {
    campaign("reconcile", "autumn@1", "--all");
    return resultsOf("autumn@1").accepted === undefined;
  });

  const page = await browser.newPage();
  watch(page, origin);
  const link = runJson([0], "serve", "link", "--for", "Olena", "--decide").url;
  await signIn(page, link);
  const aside = await browser.createBrowserContext();
  const other = await aside.newPage();
  watch(other, origin);
  await signIn(other, url);

  for (const [name, path] of [
    ["front", "/"],
    ["runs", "/runs"],
    ["runs-sorted", "/runs?everything=1&sort=delivered"],
    ["schedules", "/schedules"],
    ["opt-outs", "/opt-outs"],
    ["replies", "/replies"],
    ["campaigns", "/campaigns"],
    ["pause", "/schedules/weekly/pause"],
    ["run", "/runs/autumn@1"],
    ["rows", "/runs/autumn@1/rows?column=name"],
    ["message", "/runs/autumn@1/rows/2"],
    ["campaign", "/runs/autumn@1/campaign"],
    ["messages", "/runs/autumn@1/preview"],
    ["retry", "/runs/autumn@1/retry"],
    ["test", "/runs/autumn@1/test?row=2"],
  ]) {
    const response = await open(page, origin + path);
    check(response.status() === 200, `${path} is answered with ${response.status()}`);
    await inspect(page, name);
  }
  await page.setExtraHTTPHeaders({ "Accept-Language": "uk" });
  await open(page, `${origin}/runs/autumn@1`);
  check((await page.$eval("html", (html) => html.lang)) === "uk", "the page is in Ukrainian");
  await inspect(page, "run-uk");
  await page.setExtraHTTPHeaders({});

  await followsARun(page, origin);
  await stopsARun(page, other, origin);
  await helpsToFind(page, origin);
  await refusesOthers(page, origin);

  const files = await browser.newPage();
  watch(files, "file:");
  for (const [name, ...command] of [
    ["preview-file", "preview", "autumn.yaml", "--html", "preview-file.html"],
    ["plan-file", "plan", "autumn.yaml", "--out", "plan-file.html"],
    ["report-file", "report", "autumn@1", "--out", "report-file.html"],
  ]) {
    const made = campaign(...command);
    check(made.code === 0, `${command.join(" ")}: ${made.all}`);
    await files.goto(pathToFileURL(`${name}.html`).href);
    await inspect(files, name);
  }
} catch (error) {
  check(false, error.stack);
} finally {
  await browser.close();
  end();
}
if (wrong > 0) {
  console.error(`${wrong} failed checks`);
  process.exit(1);
}

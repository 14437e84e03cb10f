// The script of the dashboard. Every page also works without it; then the user reloads it to see changes.
"use strict";

// The minimum interval between two announcements to screen readers, in milliseconds.
const MIN_ANNOUNCEMENT_INTERVAL = 10_000;

/** Whether the user is working in a part. Then it must not be replaced yet. */
function isBusy(part) {
  const fields = part.querySelectorAll("input:not([type=hidden]), textarea, select");
  return part.contains(document.activeElement) || [...fields].some((field) => field.value !== field.defaultValue);
}

/** New versions of parts, until the user leaves the old ones. */
const waiting = new Map();

/** Replaces the part with the same name. */
function replace(name, html) {
  const part = document.getElementById(name);
  if (!part) return;
  if (isBusy(part)) {
    waiting.set(name, html);
    return;
  }
  waiting.delete(name);
  const template = document.createElement("template");
  template.innerHTML = html;
  // Details that the user opened stay open.
  const open = [...part.querySelectorAll("details")].map((details) => details.open);
  template.content.querySelectorAll("details").forEach((details, place) => (details.open = open[place] ?? details.open));
  part.replaceWith(template.content);
}

/** Loads a page again every few seconds while it is visible, and replaces this part of it. */
function refresh(part) {
  setInterval(async () => {
    if (document.hidden) return;
    const response = await fetch(location.href).catch(() => null);
    if (!response || !response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(part.id);
    if (fresh && fresh.innerHTML !== document.getElementById(part.id).innerHTML) replace(part.id, fresh.outerHTML);
  }, part.dataset.refresh * 1000);
}

/** Announces the state of the run to screen readers, but not too often. */
function announce(last) {
  const sentence = document.querySelector("[data-sentence]");
  const announcer = document.getElementById("announcer");
  if (!sentence || !announcer || Date.now() - last.at < MIN_ANNOUNCEMENT_INTERVAL) return;
  const text = sentence.textContent.trim();
  if (text === last.text) return;
  announcer.textContent = text;
  last.text = text;
  last.at = Date.now();
}

/** Updates the parts of a page while its run is being sent. */
function follow(main) {
  const last = { text: "", at: Date.now() };
  const source = new EventSource(main.dataset.live);
  source.addEventListener("parts", (event) => {
    for (const [name, html] of Object.entries(JSON.parse(event.data))) replace(name, html);
    announce(last);
  });
  // The session has ended, or the server stops.
  source.addEventListener("gone", () => {
    source.close();
    location.reload();
  });
  setInterval(() => announce(last), MIN_ANNOUNCEMENT_INTERVAL);
}

document.addEventListener("focusout", () => {
  setTimeout(() => [...waiting].forEach(([name, html]) => replace(name, html)), 0);
});
const live = document.querySelector("[data-live]");
if (live) follow(live);
document.querySelectorAll("[data-refresh]").forEach(refresh);

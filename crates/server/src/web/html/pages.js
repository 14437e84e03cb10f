// The script of the pages. Every page works without it, by reloading.
"use strict";

// The shortest time between two announcements to screen readers.
const QUIET = 10_000;

/** Whether the user is working in a part, so that it must not be replaced yet. */
function isBusy(part) {
  const fields = part.querySelectorAll("input:not([type=hidden]), textarea, select");
  return part.contains(document.activeElement) || [...fields].some((field) => field.value !== field.defaultValue);
}

/** The parts that wait until the user leaves them. */
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
  const made = document.createElement("template");
  made.innerHTML = html;
  part.replaceWith(made.content);
}

/** Announces the sentence to screen readers, but not too often. */
function speak(said) {
  const sentence = document.querySelector("[data-sentence]");
  const voice = document.getElementById("voice");
  if (!sentence || !voice || Date.now() - said.at < QUIET) return;
  const words = sentence.textContent.trim();
  if (words === said.words) return;
  voice.textContent = words;
  said.words = words;
  said.at = Date.now();
}

/** Updates the parts of a page live. */
function follow(main) {
  const said = { words: "", at: Date.now() };
  const source = new EventSource(main.dataset.live);
  source.addEventListener("parts", (event) => {
    for (const [name, html] of Object.entries(JSON.parse(event.data))) replace(name, html);
    speak(said);
  });
  // The session has ended, or the server stops.
  source.addEventListener("gone", () => {
    source.close();
    location.reload();
  });
  document.addEventListener("focusout", () => {
    setTimeout(() => [...waiting].forEach(([name, html]) => replace(name, html)), 0);
  });
  setInterval(() => speak(said), QUIET);
}

/** Asks before a form with irreversible effects is sent. */
function ask(event) {
  const words = event.submitter && event.submitter.dataset.ask;
  if (words && !confirm(words)) event.preventDefault();
}

document.addEventListener("submit", ask);
const live = document.querySelector("[data-live]");
if (live) follow(live);

// Fetches the data every second and draws it; sends button presses.

import { mark, say } from "./draw.js";
import * as sections from "./sections.js";
import { listen, query } from "./view.js";

const PERIOD_MS = 1000;
const TIMEOUT_MS = 5000;
const byId = (name) => document.getElementById(name);
let wakeUp = () => {};

async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.message ?? `the manager answered ${answer.status}`);
  return body;
}

function showMessage(text, level) {
  const said = byId("said");
  say(said, text);
  mark(said, "data-level", level);
  said.hidden = false;
}

async function press(action, button) {
  button.disabled = true;
  try {
    const done = await ask("press", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Cloudkeel-Pressed": "yes" },
      body: JSON.stringify({ id: action.id, on: action.on }),
    });
    showMessage(done.message, "good");
  } catch (problem) {
    showMessage(`${action.label}: ${problem.message}`, "bad");
  } finally {
    button.disabled = false;
    // A disabled button loses the focus; keyboard users need it back.
    if (document.activeElement === document.body && button.isConnected) button.focus();
    wakeUp();
  }
}

function draw(data) {
  document.title = data.title || "cloudkeel";
  say(byId("title"), data.title || "cloudkeel");
  say(byId("notice"), data.notice ?? "");
  byId("notice").hidden = !data.notice;
  // A standby has no data; empty tables would look as if there were nothing.
  const isEmpty = data.windows.nodes.total + data.windows.balancers.total === 0;
  byId("main").hidden = !data.leader.isShown && isEmpty;
  for (const section of Object.values(sections)) section(data, press);
}

function connection(level, text) {
  mark(byId("connection"), "data-level", level);
  byId("connection").classList.add("state");
  say(byId("connection"), text);
  document.body.classList.toggle("stale", level === "bad");
}

function pause() {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PERIOD_MS);
    wakeUp = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

async function watch() {
  for (;;) {
    try {
      draw(await ask(`picture${query()}`));
      connection("good", "live");
    } catch (problem) {
      connection("bad", `not live: ${problem.message}`);
    }
    await pause();
  }
}

listen(() => wakeUp());
watch();

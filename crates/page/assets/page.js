// Asks for the picture every second and draws it; sends presses of buttons.

import { mark, say } from "./draw.js";
import * as sections from "./sections.js";

const PAUSE = 1000;
const PATIENCE = 5000;
const byId = (name) => document.getElementById(name);
let wakeUp = () => {};

async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.message ?? `the manager answered ${answer.status}`);
  return body;
}

function tell(text, level) {
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
    tell(done.message, "good");
  } catch (problem) {
    tell(`${action.label}: ${problem.message}`, "bad");
  } finally {
    button.disabled = false;
    // A disabled button loses the focus; whoever works with a keyboard wants it back.
    if (document.activeElement === document.body && button.isConnected) button.focus();
    wakeUp();
  }
}

function draw(picture) {
  document.title = picture.title || "cloudkeel";
  say(byId("title"), picture.title || "cloudkeel");
  say(byId("notice"), picture.notice ?? "");
  byId("notice").hidden = !picture.notice;
  // A replica that stands by sees nothing; empty tables would say that there is nothing.
  const isEmpty = picture.nodes.length + picture.balancers.length === 0;
  byId("main").hidden = !picture.leader.isShown && isEmpty;
  for (const section of Object.values(sections)) section(picture, press);
}

function connection(level, text) {
  mark(byId("connection"), "data-level", level);
  byId("connection").classList.add("state");
  say(byId("connection"), text);
  document.body.classList.toggle("stale", level === "bad");
}

function pause() {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PAUSE);
    wakeUp = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

async function watch() {
  for (;;) {
    try {
      draw(await ask("picture"));
      connection("good", "live");
    } catch (problem) {
      connection("bad", `not live: ${problem.message}`);
    }
    await pause();
  }
}

watch();

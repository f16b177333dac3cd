// One function per section of the page.

import { ago, clock, element, labels, list, mark, number, say, state } from "./draw.js";
import { tools } from "./view.js";

const part = (parent, name) => parent.querySelector(`[data-part="${name}"]`);
const byId = (name) => document.getElementById(name);
const slot = (tag, name, attributes = {}) => element(tag, { "data-part": name, ...attributes });
const cell = (name, attributes = {}) => slot("td", name, attributes);

/** Buttons; pressing one calls `press` with it. */
function buttons(parent, actions, press) {
  list(parent, actions ?? [], (action) => `${action.id} ${action.on}`,
    () => element("button", { type: "button" }),
    (button, action) => {
      say(button, action.label);
      mark(button, "aria-label", action.on ? `${action.label} ${action.on}` : null);
      mark(button, "data-action", action.id);
      mark(button, "data-on", action.on || null);
      button.classList.toggle("destructive", Boolean(action.destructive));
      button.onclick = () => press(action, button);
    });
}

/** Of what there is too much to show. */
function more(count, what) {
  return count ? `and ${number(count)} more ${what}` : "";
}

function note(target, text) {
  say(target, text ?? "");
  target.hidden = !text;
}

/** What is wrong and why, before everything else. */
export function summary(data) {
  const { level, text, problems, moreProblems } = data.summary;
  mark(byId("summary"), "data-level", level);
  state(byId("summary-text"), level, text);
  const { holder } = data.leader;
  say(byId("summary-facts"), [
    holder ? `Leader: ${holder}` : "Leader: none",
    data.version ? `version ${data.version}` : "",
  ].filter(Boolean).join(" · "));
  list(byId("problems"), problems, (problem) => problem.object,
    () => element("li", {}, slot("strong", "object"), slot("span", "state"), slot("span", "why", { class: "why" })),
    (item, problem) => {
      say(part(item, "object"), problem.object);
      state(part(item, "state"), problem.level, problem.state);
      note(part(item, "why"), problem.why);
    });
  note(byId("problems-more"), more(moreProblems, "problems"));
}

export function managers(data, press) {
  list(byId("managers"), data.managers, (row) => row.name,
    () => element("div", { class: "chip", role: "listitem" },
      element("strong", {}, slot("a", "name")), slot("span", "state"), slot("span", "buttons", { class: "buttons" })),
    (chip, row) => {
      say(part(chip, "name"), row.name);
      // Its own page, as far as that is known.
      mark(part(chip, "name"), "href", row.link);
      state(part(chip, "state"), row.level, row.state);
      buttons(part(chip, "buttons"), row.actions, press);
    });
}

export function steps(data) {
  byId("steps").hidden = data.steps.length === 0;
  const signs = { waiting: "neutral", running: "running", passed: "good", failed: "bad" };
  list(byId("steps-list"), data.steps, (step) => step.title,
    () => element("li", {}, slot("span", "state"), slot("span", "title"), slot("small", "note")),
    (item, step) => {
      mark(item, "data-state", step.state);
      mark(item, "aria-current", step.state === "running" ? "step" : null);
      state(part(item, "state"), signs[step.state], step.state);
      say(part(item, "title"), step.title);
      note(part(item, "note"), step.note);
    });
}

export function nodes(data, press) {
  tools("nodes", data.windows.nodes);
  list(byId("nodes-rows"), data.nodes, (row) => row.name,
    () => element("tr", {},
      element("th", { scope: "row" }, slot("span", "name"), slot("small", "note")),
      element("td", { "data-label": "State" }, slot("span", "state"), slot("small", "age")),
      element("td", { "data-label": "Machine" }, slot("span", "machine-state"),
        element("small", {}, slot("span", "cloud"), slot("span", "machine", { class: "copy", title: "Click to copy" }))),
      cell("kind", { "data-label": "Kind" }),
      cell("addresses", { "data-label": "Addresses", class: "labels" }),
      cell("taints", { "data-label": "Taints", class: "labels" }),
      cell("buttons", { class: "buttons" })),
    (line, row) => {
      say(part(line, "name"), row.name);
      note(part(line, "note"), row.note);
      state(part(line, "state"), row.level, row.state);
      say(part(line, "machine-state"), row.machineState);
      note(part(line, "age"), row.created ? `${ago(row.created, data.time)} old` : "");
      say(part(line, "cloud"), row.cloud && row.machine ? `${row.cloud} · ` : row.cloud);
      say(part(line, "machine"), row.machine);
      say(part(line, "kind"), row.kind);
      labels(part(line, "addresses"), row.addresses, "address");
      labels(part(line, "taints"), row.taints, "taint");
      buttons(part(line, "buttons"), row.actions, press);
    });
}

function targets(parent, row) {
  const most = Math.max(1, ...row.targets.map((target) => target.connections ?? 0));
  list(parent, row.targets, (target) => `${target.node} ${target.listener ?? ""}`,
    () => element("li", {}, element("span", {}, slot("span", "node"), slot("small", "listener")), slot("span", "state"),
      slot("meter", "share", { min: "0" }), slot("span", "count", { class: "number" })),
    (item, target) => {
      say(part(item, "node"), target.node);
      note(part(item, "listener"), target.listener);
      state(part(item, "state"), target.level, target.state);
      const counted = target.connections !== undefined && target.connections !== null;
      item.classList.toggle("counted", counted);
      const meter = part(item, "share");
      meter.hidden = !counted;
      if (counted) {
        mark(meter, "max", most);
        mark(meter, "value", target.connections);
        mark(meter, "aria-label", `connections of ${target.node} ${target.listener ?? ""}`.trim());
      }
      const open = target.open ? ` (${number(target.open)} open)` : "";
      say(part(item, "count"), counted ? `${number(target.connections)}${open}` : "");
    });
}

export function balancers(data) {
  tools("balancers", data.windows.balancers);
  list(byId("balancers-cards"), data.balancers, (row) => row.service,
    () => element("article", { class: "card" },
      element("h3", {}, slot("span", "service"), slot("span", "state")), slot("small", "cloud"),
      slot("p", "addresses", { class: "labels" }), slot("p", "listeners", { class: "labels" }),
      slot("p", "health", { class: "traffic" }), slot("p", "traffic", { class: "traffic" }),
      slot("p", "note", { class: "note" }),
      slot("ul", "targets", { class: "targets" }), slot("p", "more", { class: "more" })),
    (card, row) => {
      say(part(card, "service"), row.service);
      state(part(card, "state"), row.level, row.state);
      labels(part(card, "addresses"), row.addresses, "address");
      labels(part(card, "listeners"), row.listeners, "listener");
      note(part(card, "health"), row.health);
      note(part(card, "traffic"), row.traffic);
      note(part(card, "note"), row.note);
      // With one cloud, its name is not shown.
      note(part(card, "cloud"), data.clouds.length > 1 && row.cloud ? `in cloud ${row.cloud}` : "");
      targets(part(card, "targets"), row);
      note(part(card, "more"), more(row.moreTargets, "targets"));
    });
}

export function clouds(data, press) {
  list(byId("clouds-cards"), data.clouds, (row) => row.name,
    () => element("article", { class: "card" },
      element("h3", {}, slot("span", "name"), slot("span", "state")),
      slot("p", "facts"), slot("meter", "budget", { min: "0" }), slot("p", "left"),
      slot("p", "note", { class: "note" }), slot("div", "buttons", { class: "buttons" })),
    (card, row) => {
      say(part(card, "name"), `${row.name} (${row.provider})`);
      state(part(card, "state"), row.level, row.state);
      const facts = [];
      if (row.machines !== null && row.machines !== undefined) facts.push(`${number(row.machines)} machines`);
      if (row.seen) facts.push(`seen ${ago(row.seen, data.time)} ago`);
      if (row.calls) facts.push(`${number(row.calls[0])} calls, ${number(row.calls[1])} of them changes`);
      say(part(card, "facts"), facts.join(" · "));
      const meter = part(card, "budget");
      meter.hidden = !row.budget;
      part(card, "left").hidden = !row.budget;
      if (row.budget) {
        mark(meter, "max", row.budget.of);
        mark(meter, "value", row.budget.left);
        mark(meter, "aria-label", `budget of ${row.name}`);
        say(part(card, "left"), `${number(row.budget.left)} of ${number(row.budget.of)} requests left`);
      }
      note(part(card, "note"), row.note);
      buttons(part(card, "buttons"), row.actions, press);
    });
}

export function controllers(data) {
  list(byId("controllers-rows"), data.controllers, (row) => row.name,
    () => element("tr", {}, slot("th", "name", { scope: "row" }),
      element("td", { "data-label": "State" }, slot("span", "state")),
      cell("waiting", { class: "number", "data-label": "Waiting" }),
      cell("working", { class: "number", "data-label": "At work" }),
      cell("note", { "data-label": "Doing" })),
    (line, row) => {
      say(part(line, "name"), row.name);
      state(part(line, "state"), row.level, row.state);
      say(part(line, "waiting"), number(row.waiting));
      say(part(line, "working"), number(row.working));
      say(part(line, "note"), row.note ?? "");
    });
}

export function routes(data) {
  byId("routes").hidden = data.windows.routes.total === 0;
  tools("routes", data.windows.routes, data.moreRoutes ?? 0);
  note(byId("routes-more"), more(data.moreRoutes, "routes"));
  list(byId("routes-rows"), data.routes, (row) => `${row.cloud} ${row.destination} ${row.to}`,
    () => element("tr", {}, slot("th", "destination", { scope: "row" }),
      cell("to", { "data-label": "Leads to" }), cell("cloud", { "data-label": "Cloud" }),
      element("td", { "data-label": "State" }, slot("span", "state"))),
    (line, row) => {
      say(part(line, "destination"), row.destination);
      say(part(line, "to"), row.to);
      say(part(line, "cloud"), row.cloud);
      state(part(line, "state"), row.level, row.state);
    });
}

export function events(data) {
  byId("events-none").hidden = data.events.length > 0;
  list(byId("events-list"), data.events, (row) => row.id,
    () => element("li", {}, slot("time", "time"), slot("span", "reason"), slot("strong", "object"),
      slot("span", "message"), slot("span", "count", { class: "count" })),
    (item, row) => {
      mark(part(item, "time"), "datetime", row.time);
      mark(part(item, "time"), "title", clock(row.time));
      say(part(item, "time"), `${ago(row.time, data.time)} ago`);
      state(part(item, "reason"), row.level, row.reason);
      say(part(item, "object"), row.object);
      say(part(item, "message"), row.message);
      say(part(item, "count"), row.count > 1 ? `×${number(row.count)}` : "");
    });
}

/** The buttons about nothing in particular. */
export function actions(data, press) {
  buttons(byId("actions"), data.actions, press);
}

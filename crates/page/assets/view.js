// What the reader looks at: searches, pages of the lists, and texts to copy.

import { mark, number, say } from "./draw.js";

/** Smaller lists need neither a search nor pages. */
const SMALL = 20;
const LISTS = ["nodes", "balancers", "routes"];
const byId = (name) => document.getElementById(name);
const view = Object.fromEntries(LISTS.map((name) => [name, { search: "", page: 0 }]));

/** The query that asks for what is looked at. */
export function query() {
  const asked = new URLSearchParams();
  for (const name of LISTS) {
    if (view[name].search) asked.set(name, view[name].search);
    if (view[name].page) asked.set(`${name}Page`, view[name].page);
  }
  const text = asked.toString();
  return text ? `?${text}` : "";
}

/** Calls `look` whenever something else is to be shown. */
export function listen(look) {
  for (const name of LISTS) {
    byId(`${name}-search`).addEventListener("input", (event) => {
      view[name] = { search: event.target.value.trim(), page: 0 };
      look();
    });
    byId(`${name}-pager`).addEventListener("click", (event) => {
      const turn = Number(event.target.dataset?.turn ?? 0);
      if (!turn) return;
      view[name].page = Math.max(0, view[name].page + turn);
      look();
    });
  }
  document.addEventListener("click", (event) => copy(event.target.closest?.(".copy, .address")));
}

/** One click selects such a text; where the browser allows it, it is on the clipboard too. */
async function copy(target) {
  if (!target) return;
  try {
    await navigator.clipboard.writeText(target.textContent);
    mark(target, "data-copied", "yes");
    setTimeout(() => mark(target, "data-copied", null), 1200);
  } catch {
    // It stays selected.
  }
}

/** How much of a list there is, and where the reader is in it. */
export function tools(name, shown, more = 0) {
  const { total, matching, bad, warning, page, pages } = shown;
  const all = total + more;
  say(byId(`${name}-count`), matching === total ? number(all) : `${number(matching)} of ${number(all)}`);
  byId(`${name}-tools`).hidden = total <= SMALL;
  for (const [level, count, text] of [["bad", bad, "broken"], ["warning", warning, "waiting"]]) {
    const target = byId(`${name}-${level}`);
    target.hidden = count === 0;
    say(target, `${number(count)} ${text}`);
  }
  const pager = byId(`${name}-pager`);
  pager.hidden = pages <= 1;
  say(pager.querySelector("[data-part='page']"), `${number(page + 1)} / ${number(pages)}`);
  pager.querySelector("[data-turn='-1']").disabled = page === 0;
  pager.querySelector("[data-turn='1']").disabled = page + 1 >= pages;
  // The manager knows how many pages there are.
  view[name].page = page;
}

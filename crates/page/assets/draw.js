// Draws rows from data and keeps the elements that are there, so that focus, selection and scroll
// positions survive every update.

/** An element with text or children. Text never becomes markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** Sets a text only if it differs. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Sets or removes an attribute only if it differs. */
export function mark(target, name, value) {
  if (value === undefined || value === null || value === false) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value)) target.setAttribute(name, value);
}

/**
 * Makes the children of `parent` be one element per item, in their order. An element stays with its
 * key; `make` builds it once, `fill` brings it up to date. Items of the same key differ by their
 * order: an element that no key finds any more would stay for ever.
 */
export function list(parent, items, key, make, fill) {
  const there = new Map();
  for (const child of parent.children) there.set(child.dataset.key, child);
  const used = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const plain = String(key(item));
    const nth = (used.get(plain) ?? 0) + 1;
    used.set(plain, nth);
    const name = nth === 1 ? plain : `${plain} #${nth}`;
    let child = there.get(name);
    if (child) {
      there.delete(name);
    } else {
      child = make(item);
      child.dataset.key = name;
    }
    fill(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const left of there.values()) left.remove();
}

/** Plain texts as a list of small labels. */
export function labels(parent, texts, kind) {
  const counted = texts.map((text, index) => ({ text, key: `${index}:${text}` }));
  list(parent, counted, (item) => item.key, () => element("span", { class: kind }),
    (child, item) => say(child, item.text));
}

/** A state as a sign, a colour and a word: never by colour alone. */
export function state(target, level, text) {
  mark(target, "data-level", level ?? "neutral");
  target.classList.add("state");
  say(target, text ?? "");
}

/** How long before `now` a time was, such as `3m` or `2d`: the largest unit alone. */
export function ago(time, now) {
  const seconds = Math.max(0, Math.floor((new Date(now) - new Date(time)) / 1000));
  if (Number.isNaN(seconds)) return "";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  }
  return `${seconds}s`;
}

/** `12:34:56` of an RFC 3339 time, in the reader's zone. */
export function clock(time) {
  const when = new Date(time);
  return Number.isNaN(when.getTime()) ? "" : when.toLocaleTimeString([], { hour12: false });
}

/** `12,345` */
export const number = (value) => Number(value).toLocaleString("en");

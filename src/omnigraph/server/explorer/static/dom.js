// Create elements in one line. Text is escaped: data of a graph is never parsed as HTML.
export function el(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return made;
}

export const text = (value) => (value === null || value === undefined ? "—" : typeof value === "object" ? JSON.stringify(value) : String(value));

// Show a value: the beginning of a long one, the rest on demand.
const LONG = 400;
export function shown(value) {
  const all = text(value);
  if (all.length <= LONG) return all;
  return el("details", { class: "long" }, el("summary", {}, `${all.slice(0, LONG / 2)}… `, el("small", {}, `${number(all.length)} characters`)), all);
}

// An error. Lines are not wrapped: one may point into another.
export const problem = (message) => el("pre", { class: message.includes("\n") ? "error lines" : "error", role: "alert" }, message);

export const number = (value) => value.toLocaleString("en");

// A group of toggle buttons; arrow keys move between them, as between tabs.
export function tabs(label, names, chosen, choose) {
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": label });
  const mark = (name) => {
    for (const each of list.children) {
      const on = each.dataset.name === name;
      each.setAttribute("aria-selected", String(on));
      each.tabIndex = on ? 0 : -1;
    }
  };
  for (const [name, title] of Object.entries(names)) {
    list.append(el("button", { type: "button", role: "tab", "data-name": name, onclick: () => { mark(name); choose(name); } }, title));
  }
  list.addEventListener("keydown", (e) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!step) return;
    const all = [...list.children], next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    next.click();
    e.preventDefault();
  });
  mark(chosen);
  return list;
}

// A modal dialog; resolves with the argument of `done`, or null if it is closed.
export function dialog(title, build) {
  return new Promise((resolve) => {
    const box = el("dialog", { "aria-label": title });
    let result = null;
    const done = (value) => { result = value; box.close(); };
    box.append(el("h2", {}, title), ...build(done));
    box.addEventListener("close", () => { box.remove(); resolve(result); });
    document.body.append(box);
    box.showModal();
  });
}

export const time = (microseconds) => new Date(microseconds / 1000).toISOString().slice(0, 19).replace("T", " ");

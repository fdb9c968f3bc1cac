import { el, number, shown, text } from "./dom.js";

// Changes of entities as table rows: operation, entity and changed properties.
export function changeRows(changes) {
  return el("div", { class: "sheet", tabindex: "0", role: "region", "aria-label": "Changes" }, el("table", {},
    el("thead", {}, el("tr", {}, ["", "Type", "Entity", "Changes"].map((each) => el("th", { scope: "col", class: each ? "" : "op-column" }, each)))),
    el("tbody", {}, changes.map((each) => el("tr", {},
      el("td", {}, el("span", { class: `op ${each.op}` }, each.op)),
      el("td", {}, each.type.name),
      el("td", {}, each.id),
      el("td", {}, differing(each)))))));
}

export function values(image) {
  return image ? { ...(image.endpoints || {}), ...(image.properties || {}) } : {};
}

function differing({ before, after }) {
  const was = values(before), is = values(after);
  const names = [...new Set([...Object.keys(is), ...Object.keys(was)])];
  const counted = names.filter((name) => (before && after ? text(was[name]) !== text(is[name]) : text((after ? is : was)[name]) !== "—"));
  return counted.map((name) => el("div", {}, el("span", { class: "faint" }, `${name}  `),
    before && name in was ? el("del", {}, shown(was[name])) : null, before && after ? " → " : null, after && name in is ? el("ins", {}, shown(is[name])) : null));
}

// Change counts by type.
export function counts(stats) {
  const counted = Object.entries(stats);
  if (!counted.length) return el("p", { class: "notice" }, "No differences.");
  return el("div", { class: "bar" }, counted.map(([key, each]) => el("span", { class: "card bar" }, el("b", {}, key.replace(/^\w+:/, "")),
    ["inserted", "updated", "deleted"].filter((what) => each[what]).map((what) => el("span", { class: `op ${what}` }, `${number(each[what])} ${what}`)))));
}

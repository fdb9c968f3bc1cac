import { el } from "./dom.js";
import { expand, graphPane } from "./graphpane.js";

export const title = "Explore";
export const full = true;

const NAMING = ["name", "title", "label", "subject", "slug"];

export async function mount(root, { graph, branch, types, params, say, fail, go }) {
  const nodes = types.filter((each) => each.kind === "node");
  if (!nodes.length) {
    root.append(el("p", { class: "notice" }, "The schema has no node types."));
    return {};
  }
  const type = el("select", { "aria-label": "Type" }, nodes.map((each) => el("option", { value: each.name, selected: each.name === params.get("type") }, `${each.name} (${each.count.toLocaleString("en")})`)));
  const word = el("input", { type: "search", placeholder: "name or id", "aria-label": "Node", autocomplete: "off", role: "combobox", "aria-controls": "found", "aria-expanded": "false" });
  const found = el("ul", { class: "words", id: "found", role: "listbox", "aria-label": "Nodes", hidden: true });
  const depth = el("select", { "aria-label": "Steps" }, [1, 2, 3].map((each) => el("option", { value: String(each) }, each === 1 ? "1 step" : `${each} steps`)));
  const start = el("div", { class: "notice" }, "Choose a node to start. Press Enter or double-click a node to follow its edges.");
  const around = (node) => expand(pane, graph, node, { branch, say }).catch(fail);
  const pane = graphPane({
    label: "Neighbourhood", groups: nodes.map((each) => each.name), open: around, hint: " · ↵ to expand",
    acts: (node) => [el("button", { type: "button", onclick: () => around(node) }, "Expand"),
      el("button", { type: "button", onclick: () => go({ params: { type: node.group, id: node.id } }) }, "Start here")],
  });
  pane.root.hidden = true;
  root.append(el("div", { class: "bar" }, type, el("span", { class: "grow" }, word), depth), start, pane.root, found);
  word.style.width = "100%";
  let offered = [], at = -1, lastRequest = 0;

  const close = () => { lastRequest++; found.hidden = true; offered = []; at = -1; word.setAttribute("aria-expanded", "false"); };
  const choose = (id) => { close(); go({ params: { type: type.value, id } }); };

  function offer() {
    found.replaceChildren(...offered.map((each, i) => el("li", { role: "option", id: `found-${i}`, "aria-selected": String(i === at),
      onpointerdown: (e) => { e.preventDefault(); choose(each.id); } }, each.label, el("span", {}, each.label === each.id ? "" : each.id))));
    found.hidden = !offered.length;
    word.setAttribute("aria-expanded", String(offered.length > 0));
    if (at >= 0) { word.setAttribute("aria-activedescendant", `found-${at}`); found.children[at].scrollIntoView({ block: "nearest" }); }
    const box = word.getBoundingClientRect();
    found.style.left = `${box.left}px`;
    found.style.top = `${box.bottom + 4}px`;
    found.style.minWidth = `${Math.min(box.width, 420)}px`;
  }

  // Nodes whose label contains the text.
  async function look() {
    const mine = ++lastRequest, node = nodes.find((each) => each.name === type.value);
    const texts = Object.entries(node.properties).filter(([, kind]) => /^String\??$/.test(kind)).map(([name]) => name);
    const called = NAMING.find((each) => texts.includes(each)) ?? node.key.find((each) => texts.includes(each)) ?? texts[0];
    const condition = called && word.value.trim() ? `lower($n.${called}) contains $q` : "";
    const label = called ? `, $n.${called} as label` : "";
    const query = `query find(${condition ? "$q: String" : ""}) { match { $n: ${node.name} ${condition} } return { $n as id${label} } ${called ? "order { label } " : ""}limit 12 }`;
    const answer = await graph.query({ query, branch, params: condition ? { q: word.value.trim().toLowerCase() } : {} });
    if (mine !== lastRequest || document.activeElement !== word) return;
    offered = answer.rows.map((row) => ({ id: row.id, label: row.label ?? row.id }));
    at = -1;
    offer();
  }
  word.oninput = () => look().catch(fail);
  word.onfocus = () => look().catch(fail);
  word.onblur = close;
  type.onchange = () => { word.value = ""; word.focus(); };
  word.onkeydown = (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && offered.length) { at = (at + step + offered.length) % offered.length; offer(); e.preventDefault(); }
    // The text may be an id.
    if (e.key === "Enter" && (at >= 0 || word.value.trim())) choose(at >= 0 ? offered[at].id : meant());
    if (e.key === "Escape" && !found.hidden) { close(); e.stopPropagation(); }
  };
  const meant = () => (offered.find((each) => [each.id, each.label].includes(word.value.trim())) ?? offered[0])?.id ?? word.value.trim();
  depth.onchange = () => { if (params.get("id")) show(); };

  async function show() {
    const drawing = await graph.draw("neighbourhood", { type: params.get("type"), id: params.get("id"), depth: depth.value, branch, limit: depth.value === "1" ? 200 : 1000 });
    start.hidden = true;
    pane.root.hidden = false;
    pane.show(drawing);
    pane.view.select(0);
    pane.focus();
  }
  async function update(words) {
    params = words;
    if (params.get("type")) type.value = params.get("type");
    word.value = params.get("id") ?? "";
    if (params.get("id")) { await show(); return; }
    start.hidden = false;
    pane.root.hidden = true;
    word.focus();
  }
  await update(params);
  return { update, find: () => (pane.root.hidden ? word.focus() : pane.find()) };
}

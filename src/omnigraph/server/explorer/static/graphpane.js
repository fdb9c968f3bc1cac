import { details, legend } from "./details.js";
import { el, text } from "./dom.js";
import { hands } from "./hands.js";
import { graphView } from "./view.js";

// A drawing with a legend, a search field, and the properties of the selected node.
// `acts` returns buttons for the selected node; `open` handles a double click or Enter.
export function graphPane({ label, groups = [], acts = () => [], open, hint = "" }) {
  const canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": label, "aria-describedby": "graph-keys" });
  const title = el("h2"), subtitle = el("p"), list = el("ul");
  const find = el("input", { type: "search", placeholder: "find  ( / )", "aria-label": "Find a node", autocomplete: "off" });
  const facts = el("aside", { class: "facts", "aria-live": "polite", hidden: true });
  const root = el("div", { class: "graph" }, canvas, el("div", { class: "side" }, title, subtitle, find, list), facts,
    el("footer", { id: "graph-keys" }, `arrows to move · + − to zoom · f to fit${hint}`));
  const view = graphView(canvas, {
    inset: 256,
    select: (node) => {
      facts.replaceChildren();
      facts.hidden = !node;
      if (!node) return;
      details(facts, node);
      const buttons = acts(node);
      if (buttons.length) facts.append(el("div", { class: "bar" }, buttons));
    },
    open,
  });
  hands(view, canvas);
  find.oninput = () => view.find(find.value);
  find.onkeydown = (e) => {
    if (e.key === "Enter" && view.first() >= 0) { view.centre(view.first()); canvas.focus(); }
    if (e.key === "Escape") { find.value = ""; view.find(""); canvas.focus(); e.stopPropagation(); }
  };
  const drawLegend = () => { legend(list, view); };

  function show(drawing) {
    title.textContent = drawing.title;
    subtitle.textContent = drawing.subtitle;
    view.show({ ...drawing, groups });
    drawLegend();
    window.omnigraph = view;  // for those who look at the drawing with a program
  }

  // Add the nodes and links of another drawing; return the number of new nodes.
  function join(drawing) {
    const key = (node) => JSON.stringify([node.group, node.id]);
    const places = new Map(view.nodes.map((node, i) => [key(node), i]));
    const known = new Set(view.links.map((link) => `${link.source} ${link.target} ${link.label}`));
    const fresh = [], links = [];
    const place = drawing.nodes.map((node) => {
      if (!places.has(key(node))) { places.set(key(node), view.nodes.length + fresh.length); fresh.push(node); }
      return places.get(key(node));
    });
    for (const link of drawing.links) {
      const source = place[link.source], target = place[link.target], name = `${source} ${target} ${link.label}`;
      if (!known.has(name)) { known.add(name); links.push({ ...link, source, target }); }
    }
    if (!fresh.length && !links.length) return 0;
    view.extend(fresh, links);
    subtitle.textContent = `${text(view.nodes.length)} nodes, ${text(view.links.length)} edges`;
    drawLegend();
    return fresh.length;
  }

  return { root, view, show, join, focus: () => canvas.focus(), find: () => find.focus() };
}

// Expand a node: show its neighbours.
export async function expand(pane, graph, node, { branch, say }) {
  if (!node.id) return;
  const found = await graph.draw("neighbourhood", { type: node.group, id: node.id, branch });
  const came = pane.join(found);
  say(came ? `${came} more neighbours of ${node.label}` : `no more neighbours of ${node.label}`);
}

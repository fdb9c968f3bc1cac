import { forgetToken, graphIds, graphOf, hasToken, Refused, whenUnauthorized } from "./api.js";
import * as branches from "./branches.js";
import { dialog, el } from "./dom.js";
import * as explore from "./explore.js";
import * as history_ from "./history.js";
import * as query from "./query.js";
import * as schema from "./schema.js";

// The page: graph, branch and view are in its URL; and the shortcuts that work everywhere.
const VIEWS = { query, explore, schema, branches, history: history_ };
const KEYS = [
  ["1 … 5", "query, explore, schema, branches, history"], ["Ctrl ↵", "run the query"], ["Ctrl Space", "complete the word"], ["/", "find a node in the drawing"],
  ["arrows", "move between nodes; with Shift, pan the drawing"], ["↵", "on a node: follow its edges"], ["+ − f", "zoom in, zoom out, fit"], ["Esc", "close the dialog, or leave the field"], ["?", "this list"],
];
const main = document.getElementById("main"), status = document.getElementById("status");
const picks = { graph: document.getElementById("graph"), branch: document.getElementById("branch") };
let here = null, mounted = {}, latest = 0, known = null;

function say(message) {
  const line = status.appendChild(el("p", {}, message));
  setTimeout(() => line.remove(), 5000);
}
const fail = (error) => say(error.message);

whenUnauthorized((why) => dialog("Token", (done) => {
  const field = el("input", { type: "password", "aria-label": "Bearer token", placeholder: "bearer token", autocomplete: "off", autofocus: true });
  const give = (e) => { e.preventDefault(); if (field.value.trim()) done(field.value.trim()); };
  return [el("p", {}, `${why} A token is kept until this tab is closed, and nowhere else.`),
    el("form", { class: "stack", onsubmit: give }, field, el("div", { class: "bar" }, el("button", { class: "main" }, "Sign in")))];
}).then((token) => token ?? Promise.reject(new Error("This server needs a token. Reload the page to enter one."))));

// -- location ---------------------------------------------------------------------------------------------------------

const address = ({ graph, branch, view, params = {} }) => {
  const words = new URLSearchParams(params);
  return `#/${[graph, branch, view].map(encodeURIComponent).join("/")}${words.size ? `?${words}` : ""}`;
};

function read() {
  const [path, words = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [graph = "", branch = "", view = ""] = path.split("/").map((each) => { try { return decodeURIComponent(each); } catch { return ""; } });
  return { graph, branch: branch || "main", view: VIEWS[view] ? view : "query", params: new URLSearchParams(words) };
}

const go = (changes) => { location.hash = address({ graph: here.graph, branch: here.branch, view: here.view, params: {}, ...changes }); };

function option(select, names, chosen) {
  select.replaceChildren(...names.map((each) => el("option", { value: each, selected: each === chosen }, each)));
}

// The frame of every view: the lists of graphs, branches and views.
function frame({ graph, branch, view }, ids, names) {
  option(picks.graph, ids.includes(graph) ? ids : [graph, ...ids], graph);
  option(picks.branch, names.includes(branch) ? names : [branch, ...names], branch);
  document.getElementById("leave").hidden = !hasToken();
  document.title = `${VIEWS[view].title} · ${graph}`;
  document.getElementById("views").replaceChildren(...Object.entries(VIEWS).map(([key, each], i) => el("a",
    { href: address({ graph, branch, view: key }), "aria-current": key === view ? "page" : null, title: `${each.title} (${i + 1})` }, each.title)));
}

async function show({ again = false } = {}) {
  const mine = ++latest, wanted = read();
  // A view that can update itself is not mounted again.
  if (!again && mounted.update && here && ["graph", "branch", "view"].every((each) => here[each] === wanted[each])) {
    here = wanted;
    await mounted.update(wanted.params).catch(fail);
    return;
  }
  mounted = {};
  try {
    const ids = known ??= await graphIds();
    if (!wanted.graph && ids.length) { location.replace(address({ ...wanted, graph: ids[0], params: wanted.params })); return; }
    if (!wanted.graph) { await name(); return; }
    here = wanted;
    const graph = graphOf(wanted.graph), { branch, view, params } = wanted;
    // A user who may read a branch may not be allowed to list the others.
    const names = await graph.branches().catch((error) => { if (error.status === 403) return [branch]; throw error; });
    if (mine !== latest) return;
    frame(wanted, ids, names);
    if (!names.includes(branch)) throw new Error(`There is no branch ${branch}.`);
    const [types, allowed] = await Promise.all([graph.types(branch), graph.permissions(branch)]);
    const targets = new Map([[branch, allowed.actions]]);
    if (params.get("target") ?? branch !== "main") {
      const target = params.get("target") ?? "main";
      if (names.includes(target)) targets.set(target, (await graph.permissions(target)).actions);
    }
    if (mine !== latest) return;
    document.getElementById("actor").textContent = allowed.actor_id ?? "";
    main.className = VIEWS[view].full ? "full" : "";
    // A new element for each view: one that is replaced while it loads continues unseen.
    const place = el("div", { class: "view" });
    main.replaceChildren(place);
    const made = await VIEWS[view].mount(place, {
      graph, branch, types, params, say, fail, go,
      may: (action, on = branch) => Boolean(targets.get(on)?.[action]),
      refresh: (changes) => { if (changes) go(changes); else show({ again: true }); },
    });
    if (mine === latest) mounted = made || {};
  } catch (error) {
    if (mine !== latest) return;
    main.className = "";
    const denied = error instanceof Refused && error.status === 403;
    main.replaceChildren(el("p", { class: denied ? "notice" : "error", role: "alert" }, denied ? `Not permitted: ${error.message}` : error.message));
  }
}

async function name() {
  const id = await dialog("Choose a graph", (done) => {
    const field = el("input", { "aria-label": "Graph", placeholder: "graph id", autofocus: true, onkeydown: (e) => { if (e.key === "Enter" && field.value.trim()) done(field.value.trim()); } });
    return [el("p", {}, "This server does not list its graphs."), field];
  });
  if (id) location.hash = address({ graph: id, branch: "main", view: "query" });
}

// -- shortcuts everywhere ---------------------------------------------------------------------------------------------

const help = () => dialog("Keyboard", (done) => [
  el("dl", {}, KEYS.flatMap(([key, what]) => [el("dt", {}, key.split(" ").map((each) => (each === "…" ? "… " : el("kbd", {}, each)))), el("dd", {}, what)])),
  el("div", { class: "bar" }, el("button", { type: "button", class: "main", autofocus: true, onclick: () => done(null) }, "Close"))]);

addEventListener("keydown", (e) => {
  if (document.querySelector("dialog[open]") || e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
  if (e.key === "Escape" && typing) { document.activeElement.blur(); return; }
  if (typing) return;
  const view = Object.keys(VIEWS)[Number(e.key) - 1];
  if (view && here) go({ view });
  else if (e.key === "?") help();
  else if (e.key === "/" && mounted.find) mounted.find();
  else return;
  e.preventDefault();
});
document.getElementById("help").onclick = help;
document.getElementById("skip").onclick = () => main.focus();
document.getElementById("leave").onclick = () => { forgetToken(); location.reload(); };
picks.graph.onchange = () => { location.hash = address({ graph: picks.graph.value, branch: "main", view: here.view }); };
picks.branch.onchange = () => go({ branch: picks.branch.value });
addEventListener("hashchange", () => show());
show();

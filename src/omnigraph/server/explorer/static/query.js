import { dialog, el, number, problem, shown, tabs } from "./dom.js";
import { editor } from "./editor.js";
import { expand, graphPane } from "./graphpane.js";

const ROWS_AT_ONCE = 200;

export const title = "Query";
export const full = true;

export async function mount(root, { graph, branch, types, say, fail, may }) {
  const kept = `omnigraph.query.${graph.id}`;
  const params = el("div", { class: "bar params" }), which = el("select", { "aria-label": "Name of the query", hidden: true });
  const runs = el("button", { type: "button", class: "main", onclick: run }, "Run");
  const about = el("span", { class: "faint grow count" });
  const results = el("div", { class: "results" });
  let tab = "table", ran = null, busy = false;
  const choose = tabs("Results", { table: "Table", graph: "Graph", plan: "Plan" }, tab, (name) => { tab = name; if (ran) show(); });
  const typed = editor({
    value: sessionStorage.getItem(kept) ?? first(types),
    complete: (before) => graph.complete(before, branch),
    run,
    changed: (value) => { sessionStorage.setItem(kept, value); describe(); },
  });
  root.append(typed.root, el("div", { class: "bar" }, runs, el("kbd", {}, "Ctrl ↵"), which, params, about, choose), results, typed.words);
  describe();
  typed.focus();

  // The queries of the text, their parameters, and whether they are mutations.
  function describe() {
    const bare = typed.value.replace(/\/\/[^\n]*|\/\*[\s\S]*?\*\//g, " ");
    const queries = [...bare.matchAll(/\bquery\s+(\w+)\s*\(([^)]*(?:\([^)]*\)[^)]*)*)\)/g)].map((found, i, all) => ({
      name: found[1],
      params: [...found[2].matchAll(/\$(\w+)\s*:\s*([^,]+)/g)].map((each) => ({ name: each[1], type: each[2].trim() })),
      writes: /\b(insert|update|delete)\s+[A-Z]/.test(bare.slice(found.index, all[i + 1]?.index).replace(/"(?:\\.|[^"\\])*"/g, '""')),
    }));
    const names = queries.map((each) => each.name).join(" ");
    if (which.dataset.names !== names) {
      which.dataset.names = names;
      const before = which.value;
      which.replaceChildren(...queries.map((each) => el("option", { value: each.name, selected: each.name === before }, each.name)));
      which.hidden = queries.length < 2;
    }
    const chosen = queries.find((each) => each.name === which.value) || queries[0] || { params: [], writes: false };
    const signature = JSON.stringify(chosen.params);
    if (params.dataset.of !== signature) {
      params.dataset.of = signature;
      const before = new Map([...params.querySelectorAll("input")].map((each) => [each.name, each.value]));
      params.replaceChildren(...chosen.params.map((each) => el("label", {}, `$${each.name}`,
        el("input", { name: each.name, "data-type": each.type, placeholder: each.type, value: before.get(each.name) || "",
          onkeydown: (e) => { if (e.key === "Enter") run(); } }))));
    }
    runs.textContent = chosen.writes ? `Write to ${branch}` : "Run";
    return chosen;
  }
  which.onchange = describe;

  function given() {
    const found = {};
    for (const each of params.querySelectorAll("input")) {
      const type = each.dataset.type;
      if (each.value === "" && type.endsWith("?")) continue;
      if (/^(String|Date|DateTime|Blob)\b/.test(type)) found[each.name] = each.value;
      else {
        try { found[each.name] = JSON.parse(each.value); } catch { throw new Error(`$${each.name}: ${type} is not written “${each.value}”`); }
      }
    }
    return found;
  }

  async function run() {
    if (busy) return;
    busy = true;
    runs.disabled = true;
    about.textContent = "…";
    try {
      const { name, writes } = describe();
      const body = { query: typed.value, params: given(), branch };
      if (!which.hidden) body.name = name;
      ran = { body, table: null, graph: null, plan: null };
      if (writes) await write(body); else await show();
    } catch (error) {
      about.textContent = "";
      results.replaceChildren(problem(error.message));
    } finally {
      busy = false;
      runs.disabled = false;
    }
  }

  async function write(body) {
    if (!may("change")) throw new Error(`You may not write to ${branch}.`);
    const sure = await dialog(`Write to ${branch}?`, (done) => [
      el("p", {}, "This mutation becomes one commit of the branch."),
      el("div", { class: "bar" }, el("button", { type: "button", class: "main", autofocus: true, onclick: () => done(true) }, "Write"),
        el("button", { type: "button", onclick: () => done(null) }, "Cancel")),
    ]);
    about.textContent = "";
    if (!sure) return;
    const done = await graph.mutate(body);
    results.replaceChildren(el("p", { class: "notice" }, `${number(done.affected_nodes)} nodes and ${number(done.affected_edges)} edges changed on ${done.branch}.`));
    ran = null;
  }

  async function show() {
    const mine = ran;
    try {
      if (tab === "table") {
        mine.table ??= await graph.query(mine.body);
        about.textContent = `${number(mine.table.row_count)} rows`;
        results.replaceChildren(sheet(mine.table));
      } else if (tab === "graph") {
        mine.graph ??= await graph.drawQuery(mine.body);
        about.textContent = mine.graph.subtitle;
        const around = (node) => expand(pane, graph, node, { branch, say }).catch(fail);
        const pane = graphPane({ label: "Result", groups: types.filter((each) => each.kind === "node").map((each) => each.name), open: around, hint: " · ↵ to expand",
          acts: (node) => [el("button", { type: "button", onclick: () => around(node) }, "Expand"),
            el("a", { href: `#/${[graph.id, branch, "explore"].map(encodeURIComponent).join("/")}?${new URLSearchParams({ type: node.group, id: node.id })}` }, "Explore from here")] });
        results.replaceChildren(pane.root);
        pane.show(mine.graph);
      } else {
        mine.plan ??= (await graph.explain({ query: mine.body.query, name: mine.body.name, branch })).plan;
        about.textContent = "";
        results.replaceChildren(el("pre", { class: "text card" }, mine.plan.join("\n")));
      }
    } catch (error) {
      about.textContent = "";
      results.replaceChildren(problem(error.message));
    }
  }

  return { find: () => results.querySelector("input[type=search]")?.focus() };
}

function first(types) {
  const node = types.filter((each) => each.kind === "node").sort((a, b) => b.count - a.count)[0];
  if (!node) return "query all() {\n  match { $n: Type }\n  return { $n }\n}\n";
  const columns = Object.entries(node.properties).filter(([, type]) => !/Vector|Blob/.test(type)).slice(0, 4).map(([name]) => `$n.${name}`);
  return `query first() {\n  match { $n: ${node.name} }\n  return { ${columns.join(", ") || "$n"} }\n  limit 100\n}\n`;
}

// Rows in pages: a browser is slow with a hundred thousand at once.
export function sheet({ columns = [], rows }) {
  if (!rows.length) return el("p", { class: "notice" }, "No rows.");
  const body = el("tbody"), more = el("button", { type: "button", class: "more", onclick: () => next() });
  // Right-align columns of numbers; a column of nulls is not one.
  const numeric = columns.map((name) => {
    const some = rows.slice(0, ROWS_AT_ONCE).map((row) => row[name]).filter((value) => value !== null);
    return some.length > 0 && some.every((value) => typeof value === "number");
  });
  let at = 0;
  function next() {
    for (const row of rows.slice(at, at + ROWS_AT_ONCE)) {
      body.append(el("tr", {}, columns.map((name, i) => el("td", { class: `${numeric[i] ? "num" : ""}${row[name] === null ? " faint" : ""}` }, shown(row[name])))));
    }
    at += ROWS_AT_ONCE;
    more.hidden = at >= rows.length;
    more.textContent = `${number(Math.min(ROWS_AT_ONCE, rows.length - at))} more of ${number(rows.length - at)}`;
  }
  next();
  return el("div", { class: "sheet", tabindex: "0", role: "region", "aria-label": "Rows" },
    el("table", {}, el("thead", {}, el("tr", {}, columns.map((name, i) => el("th", { scope: "col", class: numeric[i] ? "num" : "" }, name)))), body), more);
}

import { counts } from "./changes.js";
import { el, problem, shown, text } from "./dom.js";

// Preview of a merge: the changes, and every conflict with its sides and a choice.
const OUTCOMES = {
  already_up_to_date: "is already up to date: there is nothing to merge.",
  fast_forward: "has no commits of its own: it is fast-forwarded.",
  merged: "has commits of its own: both sides are merged.",
};

const SHOWN_MAX = 200;

export async function review(place, { graph, source, target, may, say, merged }) {
  const choices = new Map(), decided = new Map();
  const by = el("input", { type: "checkbox", onchange: () => load() });
  const remove = el("input", { type: "checkbox" });
  const message = el("input", { placeholder: "commit message", "aria-label": "Message", class: "grow" });
  const go = el("button", { type: "button", class: "main", onclick: () => carryOut() }, `Merge into ${target}`);
  const body = el("div", { class: "stack" }), undecided = el("span", { class: "faint", "aria-live": "polite" });
  place.replaceChildren(body);
  let previewed = null;

  const request = () => ({ source, target, by: by.checked ? "property" : "row", resolve: resolutions() });
  function resolutions() {
    const found = {};
    for (const [key, side] of choices) {
      const [type, id, property] = JSON.parse(key);
      const entities = (found[type] ??= {});
      if (property === null) entities[id] = side;
      else ((entities[id] ??= { $properties: {} }).$properties)[property] = side;
    }
    return found;
  }

  async function load() {
    previewed = await graph.merge({ ...request(), resolve: {}, preview: true });
    choices.clear();
    // Keep earlier decisions, unless the rows changed.
    for (const [each, property] of questions()) {
      const before = decided.get(keyOf(each, property));
      if (before && before.about === aboutOf(each)) choices.set(keyOf(each, property), before.side);
    }
    draw();
  }

  function draw() {
    const { outcome, conflicts, changes } = previewed;
    const nothing = outcome === "already_up_to_date";
    body.replaceChildren(el("p", {}, el("b", {}, target), ` ${OUTCOMES[outcome] || outcome}`), nothing || (conflicts.length && !Object.keys(changes).length) ? "" : counts(changes));
    if (nothing) return;
    if (previewed.schema_steps.length) body.append(el("h3", {}, "The schema changes"), el("ul", { class: "schema-steps" }, previewed.schema_steps.map(step)));
    if (conflicts.length) {
      body.append(el("div", { class: "bar" }, el("h3", {}, conflicts.length === 1 ? "One conflict" : `${conflicts.length} conflicts`), undecided, el("span", { class: "grow" }),
        el("button", { type: "button", onclick: () => all("source") }, `All from ${source}`), el("button", { type: "button", onclick: () => all("target") }, `All from ${target}`)));
      conflicts.slice(0, SHOWN_MAX).forEach((each, i) => body.append(conflict(each, i)));
      if (conflicts.length > SHOWN_MAX) body.append(el("p", { class: "faint" }, `The first ${SHOWN_MAX} are shown; “All from” decides the others too.`));
    }
    if (!may("branch_merge", target)) {
      body.append(el("p", { class: "notice" }, `You may not merge into ${target}.`));
      return;
    }
    body.append(el("div", { class: "card stack" },
      el("div", { class: "bar" }, message),
      el("div", { class: "bar" }, el("label", { class: "bar" }, by, "decide property by property"), el("label", { class: "bar" }, remove, `delete ${source} afterwards`), el("span", { class: "grow" }), go)));
    count();
  }

  const keyOf = (each, property) => JSON.stringify([`${each.entity_kind}:${each.type_name}`, each.entity_id, property]);
  const aboutOf = (each) => JSON.stringify([each.source, each.target]);
  const decide = (each, property, side) => { choices.set(keyOf(each, property), side); decided.set(keyOf(each, property), { side, about: aboutOf(each) }); };
  // One question per conflict or, by property, per disputed property; null stands for the whole row.
  const disputed = (each) => (by.checked && each.properties.length ? each.properties : [null]);
  const questions = () => previewed.conflicts.flatMap((each) => disputed(each).map((property) => [each, property]));
  // A violated rule is not resolved by taking one side of an entity.
  const decides = (each) => each.entity_id !== null && (each.source !== null || each.target !== null);

  // A schema step, with the rows and values it drops.
  function step({ text: what, rows_lost: rows, values_lost: values }) {
    const lost = rows ? `loses ${rows} ${rows === 1 ? "row" : "rows"}` : values ? `loses ${values} ${values === 1 ? "value" : "values"}` : "";
    return el("li", {}, what, lost ? el("b", {}, `: ${lost}`) : "");
  }

  const radio = (each, property, side, group) => el("input", { type: "radio", name: group, value: side, checked: choices.get(keyOf(each, property)) === side, onchange: () => { decide(each, property, side); count(); } });

  // A disputed property: its three values, two of which can be chosen.
  function property(each, name, group) {
    const state = (side, called) => {
      const facts = each[side] ? shown(each[side][name]) : el("span", { class: "faint" }, "does not exist");
      if (side === "base") return el("div", { class: "state" }, el("span", { class: "faint" }, called), el("p", {}, facts));
      return el("label", { class: "state" }, radio(each, name, side, group), called, el("p", {}, facts));
    };
    return el("fieldset", { class: "property" }, el("legend", {}, name), el("div", { class: "sides" }, state("source", source), state("base", "merge base"), state("target", target)));
  }

  function conflict(each, i) {
    const byProperty = disputed(each)[0] !== null;
    const differs = new Set([...Object.keys(each.source || {}), ...Object.keys(each.target || {})].filter((name) => text((each.source || {})[name]) !== text((each.target || {})[name])));
    const state = (side, name) => {
      const row = each[side];
      const facts = row ? el("dl", {}, Object.entries(row).flatMap(([key, value]) => [el("dt", {}, key), el("dd", { class: differs.has(key) ? "differs" : "" }, shown(value))])) : el("p", { class: "faint" }, "does not exist");
      if (side === "base" || byProperty || !decides(each)) return el("div", { class: "state" }, el("span", { class: "faint" }, name), facts);
      return el("label", { class: "state" }, radio(each, null, side, `conflict-${i}`), name, facts);
    };
    return el("fieldset", { class: "conflict" }, el("legend", {}, `${each.type_name ?? ""} ${each.entity_id ?? ""}`), el("p", { class: "faint" }, each.message),
      byProperty ? each.properties.map((name, at) => property(each, name, `conflict-${i}-${at}`)) : "",
      el("div", { class: "sides" }, state("source", source), state("base", "merge base"), state("target", target)));
  }

  function all(side) {
    for (const [each, property] of questions()) if (decides(each)) decide(each, property, side);
    for (const each of body.querySelectorAll(`input[type=radio][value=${side}]`)) each.checked = true;
    count();
  }

  function count() {
    const open = questions().filter(([each, property]) => !choices.has(keyOf(each, property)));
    undecided.textContent = previewed.conflicts.length ? (open.length ? `${open.length} undecided` : "all decided") : "";
    go.disabled = open.length > 0;
  }

  async function carryOut() {
    go.disabled = true;
    try {
      const done = await graph.merge({
        ...request(), message: message.value || undefined, delete_branch: remove.checked,
        // Merge exactly the commits of the preview.
        if_commit: previewed.head, if_source_commit: previewed.source_commit,
      });
      say(done.branch_delete_error ? `merged; ${source} was not deleted: ${done.branch_delete_error}` : `merged ${source} into ${target}`);
      merged();
    } catch (error) {
      go.disabled = false;
      // A branch moved, or a choice violates a rule: load the preview again and show the error.
      if (error.status === 409 || error.status === 412) await load().catch(() => {});
      body.querySelector(".error")?.remove();
      const why = error.status === 412 ? "One of the branches changed since the preview, which was loaded again." : error.message;
      body.append(problem(why));
    }
  }

  await load();
}

import { counts } from "./changes.js";
import { el, problem, shown, text } from "./dom.js";

// A merge before it happens: what would change, every conflict with its sides, and a choice for each.
const OUTCOMES = {
  already_up_to_date: "has everything already: there is nothing to merge.",
  fast_forward: "did not move since: it takes everything over.",
  merged: "moved as well: both sides are put together.",
};

const SHOWN_MAX = 200;

export async function review(place, { graph, source, target, may, say, merged }) {
  const choices = new Map(), decided = new Map();
  const by = el("input", { type: "checkbox", onchange: () => load() });
  const remove = el("input", { type: "checkbox" });
  const message = el("input", { placeholder: "why (kept with the commit)", "aria-label": "Message", class: "grow" });
  const go = el("button", { type: "button", class: "main", onclick: () => carryOut() }, `Merge into ${target}`);
  const body = el("div", { class: "stack" }), undecided = el("span", { class: "faint", "aria-live": "polite" });
  place.replaceChildren(body);
  let previewed = null;

  const asked = () => ({ source, target, by: by.checked ? "property" : "row", resolve: resolutions() });
  function resolutions() {
    const found = {};
    for (const [key, side] of choices) {
      const [type, id] = JSON.parse(key);
      (found[type] ??= {})[id] = side;
    }
    return found;
  }

  async function load() {
    previewed = await graph.merge({ ...asked(), resolve: {}, preview: true });
    choices.clear();
    // What was decided stays, unless it is about other rows by now.
    for (const each of previewed.conflicts) {
      const before = decided.get(keyOf(each));
      if (before && before.about === aboutOf(each)) choices.set(keyOf(each), before.side);
    }
    draw();
  }

  function draw() {
    const { outcome, conflicts, changes } = previewed;
    const nothing = outcome === "already_up_to_date";
    body.replaceChildren(el("p", {}, el("b", {}, target), ` ${OUTCOMES[outcome] || outcome}`), nothing || (conflicts.length && !Object.keys(changes).length) ? "" : counts(changes));
    if (nothing) return;
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

  const keyOf = (each) => JSON.stringify([`${each.entity_kind}:${each.type_name}`, each.entity_id]);
  const aboutOf = (each) => JSON.stringify([each.source, each.target]);
  const decide = (each, side) => { choices.set(keyOf(each), side); decided.set(keyOf(each), { side, about: aboutOf(each) }); };
  // What breaks a rule is not decided by taking a side of one entity.
  const decides = (each) => each.entity_id !== null && (each.source !== null || each.target !== null);

  function conflict(each, i) {
    const differs = new Set([...Object.keys(each.source || {}), ...Object.keys(each.target || {})].filter((name) => text((each.source || {})[name]) !== text((each.target || {})[name])));
    const state = (side, name) => {
      const row = each[side];
      const facts = row ? el("dl", {}, Object.entries(row).flatMap(([key, value]) => [el("dt", {}, key), el("dd", { class: differs.has(key) ? "differs" : "" }, shown(value))])) : el("p", { class: "faint" }, "not there");
      if (side === "base" || !decides(each)) return el("div", { class: "state" }, el("span", { class: "faint" }, name), facts);
      return el("label", { class: "state" }, el("input", { type: "radio", name: `conflict-${i}`, value: side, checked: choices.get(keyOf(each)) === side, onchange: () => { decide(each, side); count(); } }), name, facts);
    };
    return el("fieldset", { class: "conflict" }, el("legend", {}, `${each.type_name ?? ""} ${each.entity_id ?? ""}`), el("p", { class: "faint" }, each.message),
      el("div", { class: "sides" }, state("source", source), state("base", "before both"), state("target", target)));
  }

  function all(side) {
    for (const each of previewed.conflicts) if (decides(each)) decide(each, side);
    for (const each of body.querySelectorAll(`input[type=radio][value=${side}]`)) each.checked = true;
    count();
  }

  function count() {
    const open = previewed.conflicts.filter((each) => !choices.has(keyOf(each)));
    undecided.textContent = previewed.conflicts.length ? (open.length ? `${open.length} undecided` : "all decided") : "";
    go.disabled = open.length > 0;
  }

  async function carryOut() {
    go.disabled = true;
    try {
      const done = await graph.merge({
        ...asked(), message: message.value || undefined, delete_branch: remove.checked,
        // What was looked at is what is merged.
        if_commit: previewed.head, if_source_commit: previewed.source_commit,
      });
      say(done.branch_delete_error ? `merged; ${source} is still there: ${done.branch_delete_error}` : `merged ${source} into ${target}`);
      merged();
    } catch (error) {
      go.disabled = false;
      // Somebody was faster, or a choice breaks a rule: what there is to decide now is shown, and why.
      if (error.status === 409 || error.status === 412) await load().catch(() => {});
      body.querySelector(".error")?.remove();
      const why = error.status === 412 ? "One of the branches has moved on since you looked. This is what there is to decide now." : error.message;
      body.append(problem(why));
    }
  }

  await load();
}

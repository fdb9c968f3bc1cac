import { changeRows, counts } from "./changes.js";
import { dialog, el, problem, tabs } from "./dom.js";
import { graphPane } from "./graphpane.js";
import { review } from "./merge.js";

export const title = "Branches";
const MOST = 500;

export async function mount(root, { graph, branch, types, params, say, fail, go, may, refresh }) {
  const names = await graph.branches().catch((error) => { if (error.status === 403) return [branch]; throw error; });
  const source = params.get("source") ?? (branch === "main" ? null : branch), target = params.get("target") ?? "main";
  const list = el("ul", { class: "list" }, names.map((name) => el("li", {}, el("button", {
    type: "button", "aria-current": name === source ? "true" : null, onclick: () => go({ params: { source: name, target } }) }, name))));
  const create = el("button", { type: "button", onclick: () => make().catch(fail), hidden: !may("branch_create") }, "New branch");
  const right = el("div", { class: "stack" });
  root.append(el("div", { class: "two" }, el("section", { class: "stack", "aria-label": "Branches" }, el("h2", {}, "Branches"), list, create), right));
  if (!source || !names.includes(source)) {
    right.append(el("p", { class: "notice" }, names.length > 1 ? "Choose a branch to see what it changed." : "There is only main. Create a branch to review its changes here."));
    return {};
  }
  const into = el("select", { "aria-label": "Compare with", onchange: () => go({ params: { source, target: into.value } }) },
    names.filter((each) => each !== source).map((each) => el("option", { value: each, selected: each === target }, each)));
  const place = el("div", { class: "stack" });
  const views = { changes, picture, merge };
  // Against the merge base: the branch's own changes. Between the heads: also the other branch's, reversed.
  const heads = params.get("compare") === "heads";
  const compared = el("select", { "aria-label": "Show", onchange: () => go({ params: { source, target: into.value, compare: compared.value, show: params.get("show") } }) },
    [["base", "since the merge base"], ["heads", "between the heads"]].map(([value, label]) => el("option", { value, selected: heads === (value === "heads") }, label)));
  const shown = views[params.get("show")] ? params.get("show") : "changes";
  right.append(el("div", { class: "bar" }, el("h2", {}, `${source} compared with`), into, compared,
    tabs("Branch", { changes: "Changes", picture: "Picture", merge: "Merge" }, shown, (name) => open(name))), place);
  if (source === target) {
    place.append(el("p", { class: "notice" }, "Choose another branch to compare with."));
    return {};
  }

  async function open(name) {
    place.replaceChildren();
    try { await views[name](); } catch (error) { place.replaceChildren(problem(error.message)); }
  }

  async function changes() {
    const found = await graph.diff(target, source, { limit: MOST, merge_base: !heads });
    place.replaceChildren(counts(found.stats), found.changes.length ? changeRows(found.changes) : "");
    if (found.is_cut) place.append(el("p", { class: "faint" }, `The first ${MOST} changes.`));
  }

  async function picture() {
    const pane = graphPane({ label: "Difference", groups: types.filter((each) => each.kind === "node").map((each) => each.name) });
    pane.root.style.height = "70vh";
    place.replaceChildren(pane.root);
    pane.show(await graph.draw("diff", { from: target, to: source, limit: 2000, merge_base: !heads }));
  }

  async function merge() {
    await review(place, { graph, source, target, may, say, merged: () => { refresh(); } });
  }

  async function make() {
    const name = await dialog("New branch", (done) => {
      const field = el("input", { "aria-label": "Name", placeholder: "name", autofocus: true, onkeydown: (e) => { if (e.key === "Enter" && field.value.trim()) done(field.value.trim()); } });
      return [el("p", { class: "faint" }, `It starts at the head of ${branch}.`), field,
        el("div", { class: "bar" }, el("button", { type: "button", class: "main", onclick: () => { if (field.value.trim()) done(field.value.trim()); } }, "Create"), el("button", { type: "button", onclick: () => done(null) }, "Cancel"))];
    });
    if (!name) return;
    await graph.createBranch(name, branch);
    say(`created ${name} from ${branch}`);
    refresh({ params: { source: name, target: branch } });
  }

  await open(shown);
  return { find: () => place.querySelector("input[type=search]")?.focus() };
}

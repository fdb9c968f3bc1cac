import { changeRows } from "./changes.js";
import { el, time } from "./dom.js";
import { graphPane } from "./graphpane.js";

export const title = "History";
export const full = true;

export async function mount(root, { graph, branch, params, go, fail }) {
  const pane = graphPane({ label: "History of all branches", open: (node) => choose(node.id), hint: " · ↵ to see what a commit did",
    acts: (node) => [el("button", { type: "button", onclick: () => choose(node.id) }, "What it did")] });
  pane.root.style.flex = "0 0 42%";
  const list = el("ul", { class: "list" }), told = el("div", { class: "stack", "aria-live": "polite" });
  const below = el("div", { class: "two" }, el("section", { class: "stack", "aria-label": "Commits" }, el("h2", {}, `Commits of ${branch}`), list), told);
  below.style.overflow = "auto";
  root.append(pane.root, below);
  const choose = (id) => go({ params: { commit: id } });
  const [drawing, commits] = await Promise.all([graph.draw("history"), graph.commits(branch)]);
  pane.show(drawing);
  for (const each of commits.slice(0, 500)) {
    list.append(el("li", {}, el("button", { type: "button", "aria-current": each.graph_commit_id === params.get("commit") ? "true" : null, onclick: () => choose(each.graph_commit_id) },
      each.message || `Commit ${each.graph_manifest_version}`, el("small", {}, `${time(each.created_at)}${each.actor_id ? ` · ${each.actor_id}` : ""}`))));
  }
  if (params.get("commit")) await show(params.get("commit")).catch(fail);
  else told.append(el("p", { class: "notice" }, "Choose a commit to see what it did."));

  async function show(id) {
    try {
      const found = await graph.commitChanges(id, { limit: 200 });
      const { cause } = found;
      told.replaceChildren(el("h2", {}, `Commit ${id}`), el("p", { class: "faint" }, [time(cause.authored_at), cause.authored_branch, cause.actor_id].filter(Boolean).join(" · ")),
        found.changes.length ? changeRows(found.changes) : el("p", { class: "notice" }, "It changed no entity."));
      if (found.next_page_token) told.append(el("p", { class: "faint" }, "The first 200 changes."));
    } catch (error) {
      told.replaceChildren(el("h2", {}, `Commit ${id}`), el("p", { class: "notice" }, error.message));
    }
  }
  return { find: () => pane.find() };
}

import { changeRows } from "./changes.js";
import { el, time } from "./dom.js";
import { graphPane } from "./graphpane.js";

export const title = "History";
export const full = true;
const COMMITS_MAX = 300;

export async function mount(root, { graph, branch, params, go }) {
  const pane = graphPane({ label: "History of all branches", open: (node) => choose(node.id), hint: " · ↵ to see the changes of a commit",
    acts: (node) => [el("button", { type: "button", onclick: () => choose(node.id) }, "Show changes")] });
  pane.root.style.flex = "0 0 42%";
  const list = el("ul", { class: "list" }), details = el("div", { class: "stack", "aria-live": "polite" });
  const below = el("div", { class: "two" }, el("section", { class: "stack", "aria-label": "Commits" }, el("h2", {}, `Commits of ${branch}`), list), details);
  below.style.overflow = "auto";
  root.append(pane.root, below);
  const choose = (id) => go({ params: { commit: id } });
  const [drawing, commits] = await Promise.all([graph.draw("history"), graph.commits(branch, COMMITS_MAX)]);
  pane.show(drawing);
  for (const each of commits) {
    list.append(el("li", {}, el("button", { type: "button", "data-commit": each.graph_commit_id, onclick: () => choose(each.graph_commit_id) },
      each.message || `Commit ${each.graph_manifest_version}`, el("small", {}, `${time(each.created_at)}${each.actor_id ? ` · ${each.actor_id}` : ""}`))));
  }
  await update(params);

  async function update(words) {
    const id = words.get("commit");
    for (const each of list.querySelectorAll("button")) each.toggleAttribute("aria-current", each.dataset.commit === id);
    if (!id) { details.replaceChildren(el("p", { class: "notice" }, "Choose a commit to see its changes.")); return; }
    const place = pane.view.nodes.findIndex((node) => node.id === id);
    if (place >= 0 && place !== pane.view.selected) pane.view.select(place);
    await show(id);
  }

  async function show(id) {
    try {
      const found = await graph.commitChanges(id, { limit: 200 });
      const { cause } = found;
      details.replaceChildren(el("h2", {}, `Commit ${id}`), el("p", { class: "faint" }, [time(cause.authored_at), cause.authored_branch, cause.actor_id].filter(Boolean).join(" · ")),
        found.changes.length ? changeRows(found.changes) : el("p", { class: "notice" }, "No entity changed."));
      if (found.next_page_token) details.append(el("p", { class: "faint" }, "The first 200 changes."));
    } catch (error) {
      details.replaceChildren(el("h2", {}, `Commit ${id}`), el("p", { class: "notice" }, error.message));
    }
  }
  return { find: () => pane.find(), update };
}

import { el, number, tabs } from "./dom.js";
import { graphPane } from "./graphpane.js";

export const title = "Schema";
export const full = true;

export async function mount(root, { graph, branch, types, go }) {
  const place = el("div", { class: "results" });
  const nodes = types.filter((each) => each.kind === "node");
  const views = {
    picture: async () => {
      const pane = graphPane({ label: "Schema", groups: nodes.map((each) => each.name), acts: () => [] });
      place.replaceChildren(pane.root);
      pane.show(await graph.draw("schema", { branch }));
    },
    types: async () => place.replaceChildren(el("div", { class: "sheet", tabindex: "0", role: "region", "aria-label": "Types" }, el("table", {},
      el("thead", {}, el("tr", {}, ["Type", "Entities", "Properties", "Joins"].map((each) => el("th", { scope: "col", class: each === "Entities" ? "num" : "" }, each)))),
      el("tbody", {}, types.map((each) => el("tr", {},
        el("td", {}, each.kind === "node" ? el("button", { type: "button", onclick: () => go({ view: "explore", params: { type: each.name } }) }, each.name) : each.name),
        el("td", { class: "num" }, number(each.count)),
        el("td", {}, Object.entries(each.properties).map(([name, type]) => el("div", {}, el("code", {}, `${(each.key || []).includes(name) ? "◆ " : ""}${name}`), " ", el("span", { class: "faint" }, type)))),
        el("td", {}, each.kind === "edge" ? `${each.from} → ${each.to}` : "")))))))
    ,
    text: async () => place.replaceChildren(el("pre", { class: "text card", tabindex: "0" }, await graph.schemaText(branch))),
  };
  root.append(el("div", { class: "bar" }, tabs("Schema", { picture: "Picture", types: "Types", text: "Text" }, "picture", (name) => views[name]())), place);
  await views.picture();
  return { find: () => place.querySelector("input[type=search]")?.focus() };
}

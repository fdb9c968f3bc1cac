import { details, legend } from "./details.js";
import { hands } from "./hands.js";
import { graphView } from "./view.js";

// The one page that holds one drawing.
const drawing = JSON.parse(document.getElementById("drawing").textContent);
const canvas = document.getElementById("canvas"), panel = document.getElementById("panel");
const view = graphView(canvas, {
  inset: 310,
  select: (node) => {
    panel.replaceChildren();
    panel.hidden = !node;
    if (node) details(panel, node);
  },
});
document.getElementById("title").textContent = drawing.title;
document.getElementById("subtitle").textContent = drawing.subtitle;
view.show(drawing);
legend(document.getElementById("legend"), view);
hands(view, canvas);

const search = document.getElementById("search");
search.oninput = () => view.find(search.value);
search.onkeydown = (e) => { if (e.key === "Enter" && view.first() >= 0) view.centre(view.first()); };
addEventListener("keydown", (e) => {
  if (e.key === "Escape") { search.value = ""; search.blur(); view.find(""); view.select(-1); }
  if (document.activeElement === search) return;
  if (e.key === "/") { e.preventDefault(); search.focus(); }
  if (e.key === "f") view.refit();
});
window.omnigraph = view;

// What is known of a node, as a list, and which groups a drawing has.
export const add = (parent, tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return parent.appendChild(made);
};

const told = (value) => (value === null || value === undefined ? "—" : typeof value === "object" ? JSON.stringify(value) : String(value));

export function details(panel, node) {
  add(panel, "h2", node.label);
  add(panel, "p", node.mark ? `${node.group}, ${node.mark}` : node.group, "group");
  const list = add(panel, "dl");
  for (const [key, value] of Object.entries(node.details || {})) {
    add(list, "dt", key);
    const cell = add(list, "dd");
    if (value && typeof value === "object" && "before" in value) {
      add(cell, "del", told(value.before)); cell.append(" → "); add(cell, "ins", told(value.after));
    } else cell.textContent = told(value);
  }
}

export function legend(list, view) {
  list.replaceChildren();
  for (const { name, key, count, stroke, colour } of view.legend()) {
    const item = add(list, "li"), box = add(item, "button"), dot = add(box, "i", undefined, stroke ? "stroke" : "");
    box.type = "button";
    box.setAttribute("aria-pressed", "true");
    dot.style.background = colour;
    add(box, "b", name);
    if (!view.hasCards) add(box, "span", count.toLocaleString("en"));
    box.onclick = () => {
      const off = view.toggle(key);
      item.classList.toggle("off", off);
      box.setAttribute("aria-pressed", String(!off));
    };
  }
}

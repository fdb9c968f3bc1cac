import { el } from "./dom.js";

// An editor with syntax highlighting and completion. Tab leaves it, unless completions are shown.
const WORDS = new Set(("query match return order limit offset distinct where set optional not exists or and in is null as asc desc insert update " +
  "delete shortest count sum avg min max collect nearest search fuzzy match_text bm25 rrf contains starts_with now true false").split(" "));
const TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:\\.|[^"\\\n])*"?)|(\$\w*)|([A-Za-z_]\w*)|([\s\S])/g;
const LINE = 21, PAD_X = 14, PAD_Y = 12;

function coloured(text) {
  const parts = [];
  let plain = "";
  const flush = () => { if (plain) { parts.push(plain); plain = ""; } };
  for (const [all, note, string, variable, word] of text.matchAll(TOKEN)) {
    const kind = note ? "note" : string ? "text" : variable ? "var" : word && WORDS.has(word) ? "word" : word && /^[A-Z]/.test(word) ? "type" : "";
    if (!kind) { plain += all; continue; }
    flush();
    parts.push(el("span", { class: `w-${kind}` }, all));
  }
  flush();
  return parts;
}

export function editor({ value, complete, run, changed }) {
  const area = el("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "Query", "aria-autocomplete": "list",
    "aria-controls": "words", "aria-expanded": "false", role: "combobox" });
  const behind = el("pre", { "aria-hidden": "true" });
  const words = el("ul", { class: "words", id: "words", role: "listbox", "aria-label": "Words", hidden: true });
  const root = el("div", { class: "editor" }, behind, area);
  let offered = [], from = 0, at = 0, lastRequest = 0, timer = 0;

  const paint = () => { behind.replaceChildren(...coloured(area.value), "\n"); behind.scrollTop = area.scrollTop; behind.scrollLeft = area.scrollLeft; };
  const close = () => { clearTimeout(timer); lastRequest++; offered = []; words.hidden = true; area.setAttribute("aria-expanded", "false"); area.removeAttribute("aria-activedescendant"); };

  function offer() {
    words.replaceChildren(...offered.map((each, i) => el("li", { id: `word-${i}`, role: "option", "aria-selected": String(i === at),
      onpointerdown: (e) => { e.preventDefault(); at = i; accept(); } }, each.text, el("span", {}, each.about))));
    words.hidden = !offered.length;
    area.setAttribute("aria-expanded", String(offered.length > 0));
    if (!offered.length) return;
    area.setAttribute("aria-activedescendant", `word-${at}`);
    words.children[at].scrollIntoView({ block: "nearest" });
    const before = area.value.slice(0, from), lines = before.split("\n"), box = area.getBoundingClientRect();
    const wide = charWidth();
    words.style.left = `${Math.min(box.left + PAD_X + lines.at(-1).length * wide - area.scrollLeft, innerWidth - 240)}px`;
    words.style.top = `${box.top + PAD_Y + lines.length * LINE - area.scrollTop + 2}px`;
  }

  function charWidth() {
    const ctx = document.createElement("canvas").getContext("2d");
    ctx.font = getComputedStyle(area).font;
    return ctx.measureText("0").width;
  }

  async function suggest() {
    const mine = ++lastRequest, before = area.value.slice(0, area.selectionStart);
    const found = await complete(before).catch(() => null);
    if (mine !== lastRequest || !found || document.activeElement !== area) return;
    from = before.length - found.partial.length;
    offered = found.suggestions;
    at = 0;
    narrow();
  }

  // The user may have typed more meanwhile: keep only the completions that still match.
  function narrow() {
    const begun = area.value.slice(from, area.selectionStart), chosen = offered[at];
    if (area.selectionStart < from || !/^[$\w]*$/.test(begun)) { close(); return; }
    offered = offered.filter((each) => each.text.startsWith(begun) && each.text !== begun);
    at = Math.max(offered.indexOf(chosen), 0);
    offer();
  }

  function insert(text, start = area.selectionStart) {
    area.setRangeText(text, start, area.selectionEnd, "end");
    paint();
    changed(area.value);
  }

  function accept() {
    const word = offered[at].text;
    close();
    insert(word, from);
  }

  area.addEventListener("input", (e) => {
    paint();
    changed(area.value);
    clearTimeout(timer);
    if (!e.data || !/[\w$.:]$/.test(e.data)) { close(); return; }
    if (offered.length) narrow();
    timer = setTimeout(suggest, 50);
  });
  area.addEventListener("scroll", () => { paint(); close(); });
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  area.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); close(); run(); return; }
    if (e.key === " " && e.ctrlKey) { e.preventDefault(); suggest(); return; }
    if (words.hidden) {
      if (e.key === "Enter" && !e.shiftKey) {
        const line = area.value.slice(0, area.selectionStart).split("\n").at(-1);
        e.preventDefault();
        insert(`\n${line.match(/^ */)[0]}${/\{\s*$/.test(line) ? "  " : ""}`);
      }
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) { at = (at + step + offered.length) % offered.length; offer(); } else if (e.key === "Enter" || e.key === "Tab") accept();
    else if (e.key === "Escape") { close(); e.stopPropagation(); } else { if (e.key.startsWith("Arrow")) close(); return; }
    e.preventDefault();
  });
  area.value = value;
  paint();
  return { root, words, get value() { return area.value; }, set value(text) { area.value = text; paint(); changed(text); }, focus: () => area.focus() };
}

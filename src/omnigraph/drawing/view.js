import { Layout } from "./layout.js";
import { movingPicture } from "./still.js";

// With more nodes and links than these, a moved drawing is its last picture, moved.
const LARGE = 3000;

// A drawing on a canvas: nodes, links and the labels that fit. It knows of no page around it; `hooks` tell that one
// what was selected and what was opened. `hands` moves it.
export function graphView(canvas, hooks = {}) {
  const ctx = canvas.getContext("2d");
  const PALETTE = ["#4f7cd8", "#e08a3c", "#3f9d78", "#c95a84", "#8a6bd1", "#b8952f", "#3a9db5", "#c25b4a", "#6f8f3b", "#8d7666"];
  const MARKS = { inserted: "#2f9e6b", updated: "#d9932b", deleted: "#d0504a", unchanged: "#8b93a1" };
  const FONT = 12, FAMILY = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif';
  let drawing, nodes = [], links = [], groups = [], layout, near, order = [], timeline = false, cards = false;
  const hidden = new Set();
  const view = { x: 0, y: 0, k: 1, hover: -1, selected: -1, found: null, moved: false };
  let width = 0, height = 0, queued = false, labels = [], frames = 0, spent = 0, drawn = { nodes: 0, links: 0 };
  const still = movingPicture(canvas);
  const colourOf = (thing) => (thing.mark ? MARKS[thing.mark] : PALETTE[groups.indexOf(thing.group) % PALETTE.length]);
  const ink = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ink", "faint", "line", "card", "edge", "glow"]) ink[name] = style.getPropertyValue(`--${name}`).trim();
  };

  // Show a drawing. With `starts`, nodes begin where those say, and the view stays where it is.
  function show(shownDrawing, starts) {
    drawing = shownDrawing;
    ({ nodes, links } = drawing);
    timeline = drawing.layout === "timeline";
    cards = nodes.some((node) => node.lines);
    // A page that shows several drawings names all groups in advance: then each has one colour everywhere.
    groups = [...new Set([...(drawing.groups || []), ...nodes.map((node) => node.group)])];
    layout = new Layout(nodes, links, starts);
    near = nodes.map(() => new Set());
    const pairs = new Map();
    for (const link of links) {
      near[link.source].add(link.target);
      near[link.target].add(link.source);
      const key = Math.min(link.source, link.target) * nodes.length + Math.max(link.source, link.target);
      link.turn = pairs.get(key) || 0;  // the how-manieth between these two: each takes a wider way
      pairs.set(key, link.turn + 1);
    }
    nodes.forEach(measure);
    order = nodes.map((_, i) => i).sort((a, b) => nodes[b].r - nodes[a].r || a - b);
    Object.assign(view, { hover: -1, selected: -1, found: null });
    if (starts) layout.warm(0.4);
    else {
      hidden.clear();
      view.moved = false;
      // Most of the way before anything is seen, so that what appears is nearly at rest already.
      for (let began = performance.now(), k = 0; k < 250 && performance.now() - began < 600; k++) layout.step();
    }
    resize();
    if (hooks.select) hooks.select(null);
  }

  // Add nodes and links to what is shown; what is there stays where it is.
  function extend(moreNodes, moreLinks) {
    const starts = nodes.map((_, i) => [layout.x[i], layout.y[i]]);
    const selected = view.selected;
    const all = [...nodes, ...moreNodes], allLinks = [...links, ...moreLinks];
    const placed = new Map();
    for (const link of moreLinks) {
      for (const [from, to] of [[link.source, link.target], [link.target, link.source]]) {
        if (from < starts.length && to >= starts.length && !placed.has(to)) placed.set(to, from);
      }
    }
    moreNodes.forEach((_, at) => {
      const i = nodes.length + at, from = placed.get(i), turn = at * 2.399963;
      if (from !== undefined) starts[i] = [starts[from][0] + 40 * Math.cos(turn), starts[from][1] + 40 * Math.sin(turn)];
    });
    show({ ...drawing, nodes: all, links: allLinks }, starts);
    if (selected >= 0) select(selected);
  }

  function measure(node, i) {
    node.colour = colourOf(node);
    if (node.lines) {
      ctx.font = `600 ${FONT + 1}px ${FAMILY}`;
      node.w = ctx.measureText(node.label).width;
      ctx.font = `${FONT}px ${FAMILY}`;
      node.w = Math.max(node.w, ...node.lines.map((line) => ctx.measureText(line).width)) + 24;
      node.h = 30 + node.lines.length * 17 + (node.lines.length ? 8 : 0);
    } else {
      ctx.font = `600 ${FONT}px ${FAMILY}`;
      node.w = ctx.measureText(node.label).width;
    }
    node.r = timeline ? 7 : Math.min(5 + 1.7 * Math.sqrt(layout.degree[i]), 22);
  }

  const shown = (i) => !hidden.has(nodes[i].mark || nodes[i].group);
  const sx = (i) => (layout.x[i] - view.x) * view.k + width / 2;
  const sy = (i) => (layout.y[i] - view.y) * view.k + height / 2;

  function fit() {
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
    for (let i = 0; i < nodes.length; i++) {
      if (!shown(i)) continue;
      const w = cards || nodes.length < 400 ? nodes[i].w / 2 : 30, h = cards ? nodes[i].h / 2 : 20;
      x0 = Math.min(x0, layout.x[i] - w); x1 = Math.max(x1, layout.x[i] + w);
      y0 = Math.min(y0, layout.y[i] - h - (cards && near[i].has(i) ? 70 : 0)); y1 = Math.max(y1, layout.y[i] + h);
    }
    if (x0 > x1) return;
    const left = width > 760 ? hooks.inset ?? 20 : 20, wide = width - left - 40, high = height - 80;
    const k = Math.min(wide / (x1 - x0), high / (y1 - y0), 1.6);
    view.k = timeline ? Math.max(k, 0.55) : Math.max(k, 0.02);
    // A long history shows its newest end.
    view.x = timeline && k < 0.55 ? x1 - (width / 2 - 40) / view.k : (x0 + x1) / 2 - (left / 2 - 10) / view.k;
    view.y = (y0 + y1) / 2;
  }

  function path(link) {
    const a = link.source, b = link.target, ax = sx(a), ay = sy(a), bx = sx(b), by = sy(b);
    if (a === b) {
      const r = cards ? 34 * view.k : (nodes[a].r + 10) * view.k ** 0.5, up = cards ? (nodes[a].h / 2) * view.k : 0;
      return { loop: true, x: ax, y: ay - up - r * 0.6, r, mx: ax, my: ay - up - r * 1.6 };
    }
    const bend = link.turn ? (link.turn % 2 ? 1 : -1) * Math.ceil(link.turn / 2) * 34 * view.k * (a < b ? 1 : -1) : 0;
    const dx = bx - ax, dy = by - ay, d = Math.hypot(dx, dy) || 1;
    const qx = (ax + bx) / 2 - (dy / d) * bend * 2, qy = (ay + by) / 2 + (dx / d) * bend * 2;
    return { ax, ay, bx, by, qx, qy, bend, mx: (ax + 2 * qx + bx) / 4, my: (ay + 2 * qy + by) / 4 };
  }

  function border(i, fromX, fromY) {
    // How far from its middle a node ends, towards a point.
    const node = nodes[i];
    if (!node.lines) return node.r * Math.max(view.k, 0.14) ** 0.5 + 1;
    const dx = Math.abs(fromX - sx(i)) || 1e-6, dy = Math.abs(fromY - sy(i)) || 1e-6, d = Math.hypot(dx, dy);
    return Math.min((node.w / 2) * view.k * d / dx, (node.h / 2) * view.k * d / dy) + 1;
  }

  function drawLinks(lit) {
    const arrows = links.length < 1500 || view.k > 0.7;
    const batches = new Map();
    for (const link of links) {
      if (!shown(link.source) || !shown(link.target) || hidden.has(`link ${link.group}`)) continue;
      const on = lit < 0 || link.source === lit || link.target === lit;
      const colour = link.mark ? MARKS[link.mark] : lit >= 0 && on ? nodes[lit].colour : ink.line;
      const key = `${colour}|${link.dashed ? 1 : 0}|${on ? 1 : 0}`;
      if (!batches.has(key)) batches.set(key, []);
      batches.get(key).push(link);
    }
    for (const [key, batch] of batches) {
      const [colour, dashed, on] = key.split("|");
      ctx.globalAlpha = on === "1" ? (links.length > 3000 && lit < 0 ? 0.35 : 0.85) : 0.12;
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = lit >= 0 && on === "1" ? 1.8 : cards || timeline ? 1.6 : 1;
      ctx.setLineDash(dashed === "1" ? [5, 4] : []);
      ctx.beginPath();
      const heads = [];
      for (const link of batch) {
        const p = path(link);
        if (p.loop) { ctx.moveTo(p.x + p.r, p.y); ctx.arc(p.x, p.y, p.r, 0, 7); continue; }
        if (Math.max(p.ax, p.bx) < 0 || Math.min(p.ax, p.bx) > width || Math.max(p.ay, p.by) < 0 || Math.min(p.ay, p.by) > height) continue;
        drawn.links++;
        ctx.moveTo(p.ax, p.ay);
        if (p.bend) ctx.quadraticCurveTo(p.qx, p.qy, p.bx, p.by); else ctx.lineTo(p.bx, p.by);
        if (arrows) heads.push([link, p]);
      }
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.beginPath();
      const s = Math.min(Math.max(4 * view.k, 3), 5.5);
      for (const [link, p] of heads) {
        const turn = Math.atan2(p.by - p.qy, p.bx - p.qx), far = border(link.target, p.qx, p.qy);
        const x = p.bx - Math.cos(turn) * far, y = p.by - Math.sin(turn) * far;
        ctx.moveTo(x, y);
        ctx.lineTo(x - s * 1.8 * Math.cos(turn - 0.4), y - s * 1.8 * Math.sin(turn - 0.4));
        ctx.lineTo(x - s * 1.8 * Math.cos(turn + 0.4), y - s * 1.8 * Math.sin(turn + 0.4));
        ctx.closePath();
      }
      ctx.fill();
    }
    ctx.globalAlpha = 1;
  }

  function drawNodes(lit) {
    const on = (i) => (view.found ? view.found.has(i) : lit < 0 || i === lit || near[lit].has(i));
    if (cards) {
      for (const i of order) if (shown(i)) drawCard(i, on(i) ? 1 : 0.25);
      return;
    }
    const batches = new Map();
    for (const i of order) {
      if (!shown(i)) continue;
      const key = `${nodes[i].colour}|${on(i) ? 1 : 0}`;
      if (!batches.has(key)) batches.set(key, []);
      batches.get(key).push(i);
    }
    const scale = Math.max(view.k, 0.14) ** 0.5;
    for (const [key, batch] of batches) {
      const [colour, lightened] = key.split("|");
      ctx.globalAlpha = lightened === "1" ? 1 : 0.15;
      ctx.fillStyle = colour;
      ctx.strokeStyle = ink.paper;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      for (const i of batch) {
        const x = sx(i), y = sy(i), r = nodes[i].r * scale;
        if (x < -r || y < -r || x > width + r || y > height + r) continue;
        drawn.nodes++;
        ctx.moveTo(x + r, y);
        ctx.arc(x, y, r, 0, 6.2832);
      }
      ctx.fill();
      if (scale > 0.6) ctx.stroke();  // of small ones that lie close, nothing would be left
    }
    ctx.globalAlpha = 1;
    if (view.selected >= 0 && shown(view.selected)) {
      ctx.strokeStyle = ink.ink; ctx.lineWidth = 2; ctx.beginPath();
      ctx.arc(sx(view.selected), sy(view.selected), nodes[view.selected].r * scale + 3, 0, 6.2832); ctx.stroke();
    }
  }

  function drawCard(i, alpha) {
    const node = nodes[i], k = view.k, x = sx(i) - (node.w / 2) * k, y = sy(i) - (node.h / 2) * k;
    ctx.save();
    ctx.globalAlpha = alpha;
    ctx.translate(x, y);
    ctx.scale(k, k);
    ctx.beginPath(); ctx.roundRect(0, 0, node.w, node.h, 9);
    ctx.fillStyle = ink.card; ctx.shadowColor = "rgba(0,0,0,.18)"; ctx.shadowBlur = 12; ctx.shadowOffsetY = 2; ctx.fill();
    ctx.shadowColor = "transparent";
    ctx.lineWidth = view.selected === i ? 2.5 : 1.2; ctx.strokeStyle = node.colour; ctx.stroke();
    ctx.beginPath(); ctx.roundRect(0, 0, node.w, 28, node.lines.length ? [9, 9, 0, 0] : 9); ctx.fillStyle = node.colour; ctx.fill();
    ctx.textBaseline = "middle"; ctx.textAlign = "left";
    ctx.fillStyle = "#ffffff"; ctx.font = `600 ${FONT + 1}px ${FAMILY}`; ctx.fillText(node.label, 12, 15);
    ctx.font = `${FONT}px ${FAMILY}`; ctx.fillStyle = ink.ink;
    node.lines.forEach((line, at) => ctx.fillText(line, 12, 42 + at * 17));
    ctx.restore();
  }

  function overlaps(box, i, r) {
    const x = sx(i), y = sy(i);
    return x + r > box[0] && x - r < box[2] && y + r > box[1] && y - r < box[3];
  }

  function drawLabels(lit) {
    labels = [];
    ctx.textBaseline = "middle"; ctx.textAlign = "center"; ctx.lineJoin = "round";
    const place = (text, x, y, wide, bold, clear = () => true) => {
      const box = [x - wide / 2 - 3, y - FONT / 2 - 3, x + wide / 2 + 3, y + FONT / 2 + 3];
      if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > height) return false;
      for (const l of labels) if (box[0] < l.box[2] && box[2] > l.box[0] && box[1] < l.box[3] && box[3] > l.box[1]) return false;
      if (!clear(box)) return false;
      labels.push({ text, box, size: FONT });
      ctx.font = `${bold ? "600 " : ""}${FONT}px ${FAMILY}`;
      ctx.lineWidth = 4; ctx.strokeStyle = ink.paper; ctx.strokeText(text, x, y);
      ctx.fillStyle = bold ? ink.ink : ink.faint;
      ctx.fillText(text, x, y);
      return true;
    };
    const scale = Math.max(view.k, 0.14) ** 0.5;
    if (!cards) {
      const first = [view.hover, view.selected].filter((i) => i >= 0);
      if (lit >= 0) first.push(...near[lit]);
      let tried = 0;
      for (const i of new Set([...first, ...order])) {
        if (!shown(i) || labels.length > 160 || tried > 900) continue;
        const x = sx(i), y = sy(i);
        if (x < 0 || y < 0 || x > width || y > height) continue;
        if (lit >= 0 && i !== lit && !near[lit].has(i)) continue;
        if (view.found && !view.found.has(i)) continue;
        tried++;
        const { label, w, r } = nodes[i], off = r * scale + 10, aside = r * scale + w / 2 + 6;
        // Where there is room for it, a label lies on no other node.
        const places = [[x, y + off], [x, y - off], [x + aside, y], [x - aside, y]];
        const clear = (box) => !nodes.some((other, j) => j !== i && shown(j) && overlaps(box, j, other.r * scale));
        if (nodes.length > 400 || !places.some(([px, py]) => place(label, px, py, w, true, clear)))
          places.slice(0, 2).some(([px, py]) => place(label, px, py, w, true));
      }
    }
    // Cards that are too small to be read have their names beside them instead, and their links none.
    const tiny = cards && view.k < 0.5;
    if (tiny) {
      for (const i of new Set([view.hover, view.selected, ...order].filter((each) => each >= 0))) {
        if (!shown(i) || (view.found && !view.found.has(i)) || (lit >= 0 && i !== lit && !near[lit].has(i))) continue;
        ctx.font = `600 ${FONT}px ${FAMILY}`;
        place(nodes[i].label, sx(i), sy(i) - (nodes[i].h / 2) * view.k - 9, ctx.measureText(nodes[i].label).width, true);
      }
    }
    if ((cards && !tiny) || lit >= 0) {
      ctx.font = `${FONT}px ${FAMILY}`;
      for (const link of links) {
        if (!link.label || !shown(link.source) || !shown(link.target)) continue;
        if (lit >= 0 && link.source !== lit && link.target !== lit) continue;
        const p = path(link);
        ctx.font = `${FONT}px ${FAMILY}`;
        place(link.label, p.mx, p.my, ctx.measureText(link.label).width, false);
      }
    }
  }

  function drawLanes() {
    if (!timeline) return;
    ctx.font = `600 ${FONT}px ${FAMILY}`; ctx.textAlign = "left"; ctx.textBaseline = "alphabetic";
    for (const group of groups) {
      const i = nodes.findIndex((node) => node.group === group), y = sy(i);
      ctx.fillStyle = ink.glow; ctx.fillRect(0, y - 1, width, 2);
    }
  }

  function draw() {
    queued = false;
    const began = performance.now();
    if (!layout.settled) {
      layout.step();
      if (!view.moved && !view.dragging) fit();
    }
    drawn = { nodes: 0, links: 0 };
    ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    ctx.fillStyle = ink.paper; ctx.fillRect(0, 0, width, height);
    if (layout.settled && still.moved(ctx, view, width, height)) { frames++; spent += performance.now() - began; return; }
    const lit = view.hover >= 0 ? view.hover : view.selected;
    drawLanes(); drawLinks(lit); drawNodes(lit); drawLabels(lit);
    if (layout.settled && nodes.length + links.length > LARGE) still.take(view);
    frames++; spent += performance.now() - began;
    if (!layout.settled) again();
  }

  const again = () => { if (!queued) { queued = true; requestAnimationFrame(draw); } };

  function at(px, py) {
    for (let k = order.length - 1, best = -1, far = 14 * 14; k >= -1; k--) {
      if (k < 0) return best;
      const i = order[k];
      if (!shown(i)) continue;
      const dx = sx(i) - px, dy = sy(i) - py;
      if (cards) { if (Math.abs(dx) < (nodes[i].w / 2) * view.k && Math.abs(dy) < (nodes[i].h / 2) * view.k) return i; continue; }
      const d = dx * dx + dy * dy;
      if (d < far || d < nodes[i].r ** 2) { best = i; far = Math.min(far, d); }
    }
    return -1;
  }

  function select(i) {
    view.selected = i;
    again();
    if (hooks.select) hooks.select(i < 0 ? null : nodes[i]);
  }

  function find(text) {
    const wanted = text.trim().toLowerCase();
    view.found = wanted ? new Set(nodes.map((_, i) => i).filter((i) => nodes[i].label.toLowerCase().includes(wanted))) : null;
    again();
  }

  function centre(i) { view.x = layout.x[i]; view.y = layout.y[i]; view.k = Math.max(view.k, 0.9); view.moved = true; select(i); again(); }

  function zoom(by, px = width / 2, py = height / 2) {
    const k = Math.min(Math.max(view.k * by, 0.02), 8);
    view.x += (px - width / 2) * (1 / view.k - 1 / k);
    view.y += (py - height / 2) * (1 / view.k - 1 / k);
    view.k = k; view.moved = true;
    still.move(again);
    again();
  }

  function pan(dx, dy) { view.x -= dx / view.k; view.y -= dy / view.k; view.moved = true; still.move(again); again(); }

  function refit() { view.moved = false; fit(); again(); }

  // The node that lies nearest in a direction, from the selected one or from the middle.
  function towards(dx, dy) {
    const from = view.selected, x0 = from < 0 ? width / 2 : sx(from), y0 = from < 0 ? height / 2 : sy(from);
    let best = -1, far = Infinity;
    for (const i of order) {
      if (i === from || !shown(i)) continue;
      const along = (sx(i) - x0) * dx + (sy(i) - y0) * dy, aside = Math.abs((sx(i) - x0) * dy - (sy(i) - y0) * dx);
      if (from >= 0 && along <= 0) continue;
      const cost = Math.abs(along) + 2.5 * aside;
      if (cost < far) { far = cost; best = i; }
    }
    if (best < 0) return;
    select(best);
    const x = sx(best), y = sy(best);
    if (x < 60 || y < 60 || x > width - 60 || y > height - 60) { view.x = layout.x[best]; view.y = layout.y[best]; view.moved = true; }
  }

  function drag(i, dx, dy) {
    view.dragging = true; view.moved = true;
    layout.x[i] += dx / view.k; layout.y[i] += dy / view.k; layout.fixed[i] = 1;
    layout.warm(0.15);
    again();
  }

  function drop(i) { if (!timeline) layout.fixed[i] = 0; view.dragging = false; again(); }

  function hover(i) { if (i !== view.hover) { view.hover = i; canvas.classList.toggle("over", i >= 0); again(); } }

  function resize() {
    const box = canvas.getBoundingClientRect();
    width = box.width; height = box.height;
    canvas.width = width * devicePixelRatio; canvas.height = height * devicePixelRatio;
    if (!layout) return;
    if (!view.moved) fit();
    again();
  }

  // What is drawn, by group: for a legend.
  function legend() {
    const counted = (things, name) => things.reduce((sum, each) => sum + ((each.mark || each.group) === name ? 1 : 0), 0);
    const marked = nodes.some((node) => node.mark);
    const present = marked ? Object.keys(MARKS) : groups;
    const entries = present.filter((name) => counted(nodes, name)).map((name) => ({
      name, key: name, count: counted(nodes, name), stroke: false,
      colour: marked ? MARKS[name] : PALETTE[groups.indexOf(name) % PALETTE.length],
    }));
    if (timeline) return entries;
    const linkGroups = [...new Set(links.map((link) => link.group))];
    return [...entries, ...linkGroups.map((name) => ({
      name, key: `link ${name}`, count: links.filter((l) => l.group === name).length, stroke: true, colour: "var(--line)",
    }))];
  }

  function toggle(key) { hidden.has(key) ? hidden.delete(key) : hidden.add(key); again(); return hidden.has(key); }

  new ResizeObserver(resize).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); again(); });
  readColours();
  resize();

  return {
    show, extend, select, find, centre, zoom, pan, refit, towards, drag, drop, hover, at, legend, toggle,
    open: (i) => { if (hooks.open && i >= 0) hooks.open(nodes[i]); },
    repaint: () => { readColours(); again(); },
    first: () => (view.found && view.found.size ? order.find((i) => view.found.has(i)) : -1),
    get selected() { return view.selected; },
    get nodes() { return nodes; },
    get links() { return links; },
    get isTimeline() { return timeline; },
    get hasCards() { return cards; },
    // For those who look at the drawing with a program.
    state: () => ({ nodes: nodes.length, links: links.length, labels, settled: layout.settled, frames, drawn, frame_ms: spent / Math.max(frames, 1),
      selected: view.selected < 0 ? null : nodes[view.selected].label, found: view.found ? view.found.size : null, zoom: view.k }),
    place: (label) => {
      const i = nodes.findIndex((node) => node.label === label), box = canvas.getBoundingClientRect();
      return [sx(i) + box.left, sy(i) + box.top];
    },
    frame: draw,
    settle: () => { while (!layout.settled) layout.step(); if (!view.moved) fit(); draw(); },
  };
}

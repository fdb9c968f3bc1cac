// Where nodes go: they repel each other (by quadtree, so that thousands cost little), links pull, and it cools down.
export class Layout {
  // `starts` says where nodes are already; those it does not name find a place of their own.
  constructor(nodes, links, starts = []) {
    const n = nodes.length;
    this.n = n;
    this.x = new Float64Array(n);
    this.y = new Float64Array(n);
    this.vx = new Float64Array(n);
    this.vy = new Float64Array(n);
    this.fixed = new Uint8Array(n);
    this.radius = new Float64Array(n);
    this.links = links.filter((l) => l.source !== l.target);
    this.degree = new Float64Array(n);
    for (const l of this.links) { this.degree[l.source]++; this.degree[l.target]++; }
    const room = nodes.some((node) => node.lines) ? 150 : 26;
    for (let i = 0; i < n; i++) {
      // A sunflower's spiral: everybody has room from the start, and the same drawing comes out every time.
      const turn = i * 2.399963, far = room * Math.sqrt(i + 0.5);
      const at = nodes[i].at, start = at || starts[i];
      this.x[i] = start ? start[0] : far * Math.cos(turn);
      this.y[i] = start ? start[1] : far * Math.sin(turn);
      this.fixed[i] = at ? 1 : 0;
    }
    this.distance = room === 150 ? 260 : 46;
    // Parts that nothing links would drift apart for ever; small drawings are held together more tightly.
    this.hold = n < 400 ? 0.05 : 0.014;
    this.push = room === 150 ? -5200 : -150;
    this.heat = nodes.length && nodes[0].at ? 0 : 1;
    this.cell = new Int32Array(4 * (4 * n + 64));
    this.mass = new Float64Array(4 * n + 64);
    this.cx = new Float64Array(4 * n + 64);
    this.cy = new Float64Array(4 * n + 64);
    this.body = new Int32Array(4 * n + 64);
    this.next = new Int32Array(n);
  }

  get settled() { return this.heat < 0.01; }

  warm(heat) { this.heat = Math.max(this.heat, heat); }

  step() {
    if (this.settled) return;
    this.heat *= 0.977;
    this.pull();
    this.repel();
    const { n, x, y, vx, vy, fixed } = this;
    for (let i = 0; i < n; i++) {
      if (fixed[i]) { vx[i] = vy[i] = 0; continue; }
      vx[i] = (vx[i] - x[i] * this.hold * this.heat) * 0.62;
      vy[i] = (vy[i] - y[i] * this.hold * 1.3 * this.heat) * 0.62;
      x[i] += vx[i];
      y[i] += vy[i];
    }
  }

  pull() {
    const { x, y, vx, vy, degree, distance, heat } = this;
    for (const { source: a, target: b } of this.links) {
      const dx = x[b] - x[a] || 1e-3, dy = y[b] - y[a] || 1e-3, d = Math.sqrt(dx * dx + dy * dy);
      const force = ((d - distance) / d) * heat / Math.min(degree[a], degree[b]);
      const share = degree[a] / (degree[a] + degree[b]);
      vx[b] -= dx * force * share; vy[b] -= dy * force * share;
      vx[a] += dx * force * (1 - share); vy[a] += dy * force * (1 - share);
    }
  }

  repel() {
    const { n, x, y, vx, vy, cell, mass, cx, cy, body, next } = this;
    if (n < 2) return;
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
    for (let i = 0; i < n; i++) {
      if (x[i] < x0) x0 = x[i]; if (x[i] > x1) x1 = x[i];
      if (y[i] < y0) y0 = y[i]; if (y[i] > y1) y1 = y[i];
    }
    const size = Math.max(x1 - x0, y1 - y0, 1) * 1.0001;
    const capacity = mass.length;
    let cells = 0;
    const fresh = () => { const c = cells++; cell.fill(-1, 4 * c, 4 * c + 4); body[c] = -1; return c; };
    const root = fresh();
    for (let i = 0; i < n; i++) {
      next[i] = -1;
      let c = root, left = x0, top = y0, half = size / 2, other = -1;
      for (;;) {
        if (other < 0 && body[c] < 0 && cell[4 * c] < 0 && cell[4 * c + 1] < 0 && cell[4 * c + 2] < 0 && cell[4 * c + 3] < 0) {
          body[c] = i;
          break;
        }
        if (body[c] >= 0) {
          // Somebody lives here: they move one cell down, unless both stand on one spot.
          const lodger = body[c];
          if (half < 1e-3 || cells + 2 >= capacity) { next[i] = next[lodger]; next[lodger] = i; break; }
          body[c] = -1;
          const q = (x[lodger] >= left + half ? 1 : 0) | (y[lodger] >= top + half ? 2 : 0);
          const d = fresh();
          cell[4 * c + q] = d;
          body[d] = lodger;
        }
        const right = x[i] >= left + half ? 1 : 0, low = y[i] >= top + half ? 1 : 0, q = right | (low << 1);
        let d = cell[4 * c + q];
        if (d < 0) { d = cell[4 * c + q] = fresh(); body[d] = i; break; }
        c = d; left += right * half; top += low * half; half /= 2;
      }
    }
    // Children have higher numbers than their parents: backwards is bottom up.
    for (let c = cells - 1; c >= 0; c--) {
      let m = 0, sx = 0, sy = 0;
      for (let b = body[c]; b >= 0; b = next[b]) { m++; sx += x[b]; sy += y[b]; }
      for (let q = 0; q < 4; q++) {
        const d = cell[4 * c + q];
        if (d >= 0) { m += mass[d]; sx += cx[d] * mass[d]; sy += cy[d] * mass[d]; }
      }
      mass[c] = m; cx[c] = sx / m; cy[c] = sy / m;
    }
    const stack = new Int32Array(512), widths = new Float64Array(512);
    const strength = this.push * this.heat;
    for (let i = 0; i < n; i++) {
      let top = 0;
      stack[0] = root; widths[0] = size;
      while (top >= 0) {
        const c = stack[top], wide = widths[top--];
        const dx = cx[c] - x[i], dy = cy[c] - y[i];
        let d2 = dx * dx + dy * dy;
        if (body[c] >= 0 || wide * wide < d2 * 0.81) {
          if (body[c] === i && next[i] < 0) continue;
          if (d2 < 1e-6) { vx[i] += (i % 7 - 3) * 0.1; vy[i] += (i % 5 - 2) * 0.1; continue; }
          if (d2 < 30) d2 = Math.sqrt(30 * d2);
          const force = strength * mass[c] / d2;
          vx[i] += dx * force; vy[i] += dy * force;
          continue;
        }
        for (let q = 0; q < 4; q++) {
          const d = cell[4 * c + q];
          if (d >= 0 && top < 510) { stack[++top] = d; widths[top] = wide / 2; }
        }
      }
    }
  }
}

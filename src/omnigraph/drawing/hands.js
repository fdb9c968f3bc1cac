// What hands do to a drawing: drag, zoom, select, open; with a pointer or with keys.
export function hands(view, canvas) {
  let grip = null;
  const where = (e) => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };
  canvas.onpointerdown = (e) => {
    canvas.setPointerCapture(e.pointerId);
    const [x, y] = where(e);
    grip = { x, y, i: view.at(x, y), far: 0 };
    canvas.classList.add("moving");
  };
  canvas.onpointermove = (e) => {
    const [x, y] = where(e);
    if (!grip) { view.hover(view.at(x, y)); return; }
    const dx = x - grip.x, dy = y - grip.y;
    grip.far += Math.abs(dx) + Math.abs(dy);
    grip.x = x; grip.y = y;
    if (grip.far < 3) return;
    if (grip.i >= 0 && !view.isTimeline) view.drag(grip.i, dx, dy); else view.pan(dx, dy);
  };
  canvas.onpointerup = () => {
    if (!grip) return;
    const { i, far } = grip;
    grip = null;
    canvas.classList.remove("moving");
    if (i >= 0) view.drop(i);
    if (far < 5) view.select(i);
  };
  canvas.ondblclick = (e) => view.open(view.at(...where(e)));
  canvas.onpointerleave = () => { if (!grip) view.hover(-1); };
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    view.zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), ...where(e));
  }, { passive: false });
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (e) => {
    const step = steps[e.key];
    if (step && e.shiftKey) view.pan(-60 * step[0], -60 * step[1]);
    else if (step) view.towards(...step);
    else if (e.key === "+" || e.key === "=") view.zoom(1.25);
    else if (e.key === "-") view.zoom(0.8);
    else if (e.key === "Enter") view.open(view.selected);
    else if (e.key === "f") view.refit();
    else if (e.key === "Escape") view.select(-1);
    else return;
    e.preventDefault();
    if (e.key === "Escape" || step) e.stopPropagation();
  });
}

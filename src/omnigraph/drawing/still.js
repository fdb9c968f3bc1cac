// A large drawing that is being moved: its last picture is moved along, which costs the same however much is drawn, and
// it is drawn anew as soon as it rests, or has become too coarse.
export function movingPicture(canvas) {
  const REST_MS = 120, COARSE = 1.8;
  const picture = document.createElement("canvas");
  let taken = null, moving = false, rest = 0;
  return {
    // Keep what is on the canvas, as it is seen from `view`.
    take(view) {
      picture.width = canvas.width; picture.height = canvas.height;
      if (canvas.width && canvas.height) picture.getContext("2d").drawImage(canvas, 0, 0);
      taken = { x: view.x, y: view.y, k: view.k };
    },
    // Somebody moves the drawing; once nobody does, it is drawn with `again`.
    move(again) {
      moving = taken !== null;
      clearTimeout(rest);
      rest = setTimeout(() => { moving = false; again(); }, REST_MS);
    },
    // Show the picture where it belongs now; false where the drawing itself has to be drawn.
    moved(ctx, view, width, height) {
      if (!moving || picture.width !== canvas.width || picture.height !== canvas.height) return false;
      const by = view.k / taken.k;
      if (by > COARSE || by < 1 / COARSE) return false;
      const x = (taken.x - view.x) * view.k + (width / 2) * (1 - by), y = (taken.y - view.y) * view.k + (height / 2) * (1 - by);
      if (Math.abs(x) > width / 2 || Math.abs(y) > height / 2) return false;
      ctx.drawImage(picture, x, y, width * by, height * by);
      return true;
    },
  };
}

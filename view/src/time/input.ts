// Mouse, touch and keys for the pictures over time, as in Perfetto. W and S zoom, A and D move, dragging moves,
// dragging with shift selects, and two fingers zoom.

import { GUTTER, Scale } from "./canvas";
import { moved, zoomed, type Store } from "../state";

export interface Surroundings {
  store: Store;
  length: number;
  scale: () => Scale;
  scroll: (pixels: number) => void;
  click: (x: number, y: number) => void;
}

const WHEEL = 1.0015;

export function listen(canvas: HTMLCanvasElement, around: Surroundings): void {
  const { store, length } = around;
  const zoom = (x: number, factor: number): void => {
    const { from, to } = store.state;
    const [start, end] = zoomed(from, to, around.scale().time(Math.max(x, GUTTER)), factor, length);
    store.set({ from: start, to: end });
  };
  const move = (pixels: number): void => {
    const { from, to } = store.state;
    const [start, end] = moved(from, to, pixels * around.scale().perPixel, length);
    store.set({ from: start, to: end });
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const by = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) zoom(event.offsetX, WHEEL ** (event.deltaY * by));
    else if (event.shiftKey) move(event.deltaY * by);
    else {
      move(event.deltaX * by);
      around.scroll(event.deltaY * by);
    }
  }, { passive: false });
  pointers(canvas, around, zoom, move);
  let pointer = canvas.clientWidth / 2;
  canvas.addEventListener("pointermove", (event) => (pointer = event.offsetX));
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const width = around.scale().pixels;
    const actions: Record<string, () => void> = {
      w: () => zoom(pointer, 0.7), s: () => zoom(pointer, 1 / 0.7), a: () => move(-width / 5), d: () => move(width / 5),
      ArrowLeft: () => move(-width / 10), ArrowRight: () => move(width / 10),
      ArrowUp: () => around.scroll(-44), ArrowDown: () => around.scroll(44),
      "+": () => zoom(pointer, 0.7), "-": () => zoom(pointer, 1 / 0.7),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function pointers(canvas: HTMLCanvasElement, around: Surroundings, zoom: (x: number, factor: number) => void, move: (pixels: number) => void): void {
  const down = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  let begun: number | null = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    travelled = 0;
    begun = event.shiftKey ? around.scale().time(event.offsetX) : null;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const now = { x: event.offsetX, y: event.offsetY };
    travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (down.size === 2) {
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1] ?? now;
      const distance = (point: { x: number }) => Math.max(10, Math.abs(point.x - other.x));
      zoom((now.x + other.x) / 2, distance(before) / distance(now));
    } else if (begun !== null) {
      const time = Math.max(0, around.scale().time(Math.max(now.x, GUTTER)));
      if (time !== begun) around.store.set({ selection: [Math.max(0, Math.min(begun, time)), Math.max(begun, time)] });
    } else {
      move(before.x - now.x);
      around.scroll(before.y - now.y);
    }
    down.set(event.pointerId, now);
  });
  const up = (event: PointerEvent): void => {
    if (down.delete(event.pointerId) && travelled < 4 && event.type === "pointerup") around.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
}

// Draws arrows from the waking thread to the thread that it wakes.

import type { Surface } from "./canvas";
import type { Shown } from "./flow";
import type { Run } from "./run";

/** If more wake-ups are visible than this, the arrows would be one black area, so none is drawn. */
const MOST_ARROWS = 300;

/** Draws the arrows of the threads in these lanes. `middles` has the heights of the visible rows, by lane. */
export function arrows(run: Run, surface: Surface, inSight: number[], middles: ReadonlyMap<number, number>, shown: Shown): void {
  const { scale, theme } = shown;
  const { lanes } = run;
  const found: [number, number, number][] = [];
  for (const wakee of inSight) {
    const [first, last] = lanes.range(wakee, scale.from, scale.to);
    if (last - first > 4 * MOST_ARROWS) return;
    for (let item = first; item < last; item++) {
      const waker = lanes.more[item] - 1;
      const time = lanes.endOf(wakee, item);
      if (waker >= 0 && time <= scale.to) found.push([waker, wakee, time]);
    }
  }
  if (found.length > MOST_ARROWS) return;
  const { context } = surface;
  context.strokeStyle = context.fillStyle = theme.dim;
  context.lineWidth = 1;
  for (const [waker, wakee, time] of found) {
    const [from, to] = [middles.get(waker), middles.get(wakee)];
    if (from === undefined || to === undefined || from === to) continue;
    const [x, head] = [scale.x(time), to > from ? -5 : 5];
    context.beginPath();
    context.moveTo(x, from);
    context.lineTo(x, to);
    context.stroke();
    context.beginPath();
    context.moveTo(x, to);
    context.lineTo(x - 3, to + head);
    context.lineTo(x + 3, to + head);
    context.fill();
  }
}

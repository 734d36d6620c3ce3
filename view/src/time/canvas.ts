// A canvas that is as large as its element. Coordinates are in the element's pixels.

import { plain } from "../format";

export class Surface {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  width = 0;
  height = 0;

  constructor(label: string) {
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    this.canvas.tabIndex = 0;
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser draws nothing");
    this.context = context;
  }

  /** Fits the canvas to the width of its place on the page. The caller gives the height. */
  fit(height: number): void {
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(200, this.canvas.parentElement?.clientWidth ?? 0);
    if (width !== this.width || height !== this.height || this.canvas.width !== Math.round(width * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.width = width;
      this.height = height;
    }
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }
}

/** Width of the column with names, left of the drawn events. It is smaller on narrow screens. */
export const GUTTER = (globalThis.innerWidth ?? 1280) < 600 ? 84 : 150;

/** Converts points in time to points on the canvas, and back. */
export class Scale {
  constructor(readonly from: number, readonly to: number, readonly width: number) {}

  x(time: number): number {
    return GUTTER + ((time - this.from) / (this.to - this.from)) * (this.width - GUTTER);
  }

  time(x: number): number {
    return this.from + ((x - GUTTER) / (this.width - GUTTER)) * (this.to - this.from);
  }

  get pixels(): number {
    return Math.max(1, Math.floor(this.width - GUTTER));
  }

  get perPixel(): number {
    return (this.to - this.from) / this.pixels;
  }
}

/** The text, shortened until it fits. Empty if not even three characters fit. */
export function fitted(context: CanvasRenderingContext2D, name: string, width: number): string {
  const text = plain(name);
  if (context.measureText(text).width <= width) return text;
  const each = context.measureText("m").width || 7;
  const room = Math.floor(width / each);
  if (room < 3) return "";
  let end = Math.min(text.length, room * 2);
  while (end > 2 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return end > 2 ? `${text.slice(0, end)}…` : "";
}

/** Like `fitted`, but removes the middle of the text, because names of threads differ at their ends. */
export function fittedEnds(context: CanvasRenderingContext2D, name: string, width: number): string {
  const text = plain(name);
  let kept = text.length;
  const parts = (): string => `${text.slice(0, Math.floor(kept / 2))}…${text.slice(text.length - Math.ceil(kept / 2))}`;
  if (context.measureText(text).width <= width) return text;
  while (kept > 3 && context.measureText(parts()).width > width) kept--;
  return parts();
}

/** The distance between two marks: 1, 2 or 5 times a power of ten, so that marks are about `pixels` apart. */
export function step(scale: Scale, pixels = 110): number {
  const raw = scale.perPixel * pixels;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((of) => of >= raw) ?? raw;
}

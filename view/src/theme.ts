// Colours for light and dark screens, and a set that people with red-green colour blindness can distinguish (Okabe and
// Ito).

export interface Theme {
  background: string; text: string; dim: string; line: string; path: string; negative: string; select: string;
  /** The colour of each class of states. */
  states: string[];
  functions: string[];
}

const WARM = ["#4e79a7", "#59a14f", "#9c755f", "#76b7b2", "#b07aa1", "#86bcb6", "#499894", "#79706e", "#8cd17d", "#5b6ee1"];
const SAFE = ["#0072b2", "#56b4e9", "#009e73", "#5d7ea6", "#2f6f8f", "#7fb8d6", "#3a9d8a", "#86a6c7", "#1f4e79", "#6fc2b4"];

const LIGHT: Theme = {
  background: "#ffffff", text: "#1b1f24", dim: "#5c6670", line: "#d5dae0", path: "#d7263d", negative: "#6a3fd6", select: "#2f6feb33",
  states: ["#00000000", "#59a14f", "#e8a33d", "#f2d06b", "#e1575988", "#b6bcc4", "#eceff2", "#c9a3d0"],
  functions: WARM,
};
const DARK: Theme = {
  background: "#14171b", text: "#e6e9ed", dim: "#98a2ad", line: "#343b44", path: "#ff5c70", negative: "#a58bff", select: "#6ea0ff33",
  states: ["#00000000", "#6fb865", "#e8a33d", "#b99b3c", "#c9505a88", "#4c545e", "#242a31", "#7a5a85"],
  functions: WARM,
};
const COLOUR_SAFE: Theme = {
  ...LIGHT, path: "#000000", negative: "#cc79a7",
  states: ["#00000000", "#0072b2", "#b34a00", "#f0e442", "#e69f00", "#b6bcc4", "#eceff2", "#6b6b6b"],
  functions: SAFE,
};

export const THEMES = ["auto", "light", "dark", "safe"] as const;

export function theme(name: "light" | "dark" | "safe"): Theme {
  return { light: LIGHT, dark: DARK, safe: COLOUR_SAFE }[name];
}

/** The colour of a function. The same name has the same colour in all runs and all files. */
export function functionColour(of: Theme, name: string): string {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return of.functions[(hash >>> 0) % of.functions.length];
}

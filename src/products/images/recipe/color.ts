// The bundled build: the modules of the other entry take eight times as long to load.
import culori from "culori/require";

/** `r`, `g` and `b` are whole numbers from 0 to 255. */
export interface Color {
  r: number;
  g: number;
  b: number;
  /** 0 to 1. */
  alpha: number;
}

const { converter, parse } = culori;
const toRgb = converter("rgb");
const colorCharactersMax = 100;

/** Parses a colour of CSS Color Module Level 4. Colours outside of sRGB are clipped. */
export function parseColor(text: string): Color | undefined {
  const wanted = text.trim().toLowerCase();
  // The library also reads digits without "#", which CSS does not.
  if (wanted.length > colorCharactersMax || /^[\da-f]+$/.test(wanted)) return undefined;
  const color = toRgb(parse(wanted));
  if (color === undefined) return undefined;
  const byte = (value: number): number => Math.round(clamp(value) * 255);
  return { r: byte(color.r), g: byte(color.g), b: byte(color.b), alpha: clamp(color.alpha ?? 1) };
}

/** `none` and values that are no numbers count as 0. */
const clamp = (value: number): number => (value > 0 ? Math.min(1, value) : 0);

/** The canonical spelling of a colour. */
export function formatColor({ r, g, b, alpha }: Color): string {
  return `#${[r, g, b, Math.round(alpha * 255)].map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

export interface Color {
  r: number;
  g: number;
  b: number;
  /** 0 to 1. */
  alpha: number;
}

/**
 * Parses a CSS colour: a name, hex with or without alpha, or rgb(), rgba(), hsl(), hsla() in legacy and
 * modern syntax.
 */
export function parseColor(text: string): Color | undefined {
  const wanted = text.trim().toLowerCase();
  if (wanted === "transparent") return { r: 0, g: 0, b: 0, alpha: 0 };
  const hex = /^#([\da-f]{3,8})$/.exec(wanted)?.[1] ?? names.get(wanted);
  if (hex !== undefined) return fromHex(hex);
  const call = /^(rgb|hsl)a?\(\s*([^()]*?)\s*\)$/.exec(wanted);
  if (call === null) return undefined;
  const values = call[2]!.split(/\s*[,/]\s*|\s+/);
  if (values.length < 3 || values.length > 4) return undefined;
  const alpha = values[3] === undefined ? 1 : number(values[3], 1);
  const color = call[1] === "rgb" ? fromRgb(values) : fromHsl(values);
  if (color === undefined || alpha === undefined) return undefined;
  return { ...color, alpha: clamp(alpha, 1) };
}

/** The canonical spelling of a colour. */
export function formatColor({ r, g, b, alpha }: Color): string {
  return `#${[r, g, b, Math.round(alpha * 255)].map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function fromHex(hex: string): Color | undefined {
  const digits = hex.length <= 4 ? hex.replaceAll(/./g, "$&$&") : hex;
  if (digits.length !== 6 && digits.length !== 8) return undefined;
  const [r, g, b, alpha = 255] = digits.match(/../g)!.map((pair) => Number.parseInt(pair, 16));
  return { r: r!, g: g!, b: b!, alpha: alpha / 255 };
}

type Opaque = Omit<Color, "alpha">;

function fromRgb(values: readonly string[]): Opaque | undefined {
  const [r, g, b] = values.slice(0, 3).map((value) => number(value, 255));
  if (r === undefined || g === undefined || b === undefined) return undefined;
  return { r: Math.round(clamp(r, 255)), g: Math.round(clamp(g, 255)), b: Math.round(clamp(b, 255)) };
}

function fromHsl(values: readonly string[]): Opaque | undefined {
  const hue = number(values[0]!.replace(/deg$/, ""), 360);
  const [saturation, lightness] = values.slice(1, 3).map((value) => number(value.replace(/%?$/, "%"), 1));
  if (hue === undefined || saturation === undefined || lightness === undefined) return undefined;
  const [s, l] = [clamp(saturation, 1), clamp(lightness, 1)];
  const channel = (offset: number): number => {
    const k = (((offset + hue / 30) % 12) + 12) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return { r: channel(0), g: channel(8), b: channel(4) };
}

/** A number, or a percentage of `whole`. */
function number(text: string, whole: number): number | undefined {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))(%?)$/.exec(text);
  if (match === null) return undefined;
  return match[2] === "%" ? (Number(match[1]) / 100) * whole : Number(match[1]);
}

const clamp = (value: number, max: number): number => Math.min(max, Math.max(0, value));

/** The named colours of CSS Color Module Level 4. */
const names = new Map(
  `aliceblue f0f8ff antiquewhite faebd7 aqua 0ff aquamarine 7fffd4 azure f0ffff beige f5f5dc bisque ffe4c4 black 000
blanchedalmond ffebcd blue 00f blueviolet 8a2be2 brown a52a2a burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00
chocolate d2691e coral ff7f50 cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 0ff darkblue 00008b
darkcyan 008b8b darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b
darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000 darksalmon e9967a
darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise 00ced1
darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969 dodgerblue 1e90ff
firebrick b22222 floralwhite fffaf0 forestgreen 228b22 fuchsia f0f gainsboro dcdcdc ghostwhite f8f8ff gold ffd700
goldenrod daa520 gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0 hotpink ff69b4
indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00
lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow fafad2
lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa
lightskyblue 87cefa lightslategray 778899 lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 0f0
limegreen 32cd32 linen faf0e6 magenta f0f maroon 800000 mediumaquamarine 66cdaa mediumblue 0000cd
mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee mediumspringgreen 00fa9a
mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 mintcream f5fffa mistyrose ffe4e1
moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive 808000 olivedrab 6b8e23 orange ffa500
orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 paleturquoise afeeee palevioletred db7093
papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd powderblue b0e0e6 purple 800080
rebeccapurple 663399 red f00 rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072 sandybrown f4a460
seagreen 2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090
slategrey 708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8
tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white fff whitesmoke f5f5f5 yellow ff0 yellowgreen 9acd32`
    .split(/\s+/)
    .reduce<[string, string][]>((pairs, word, i, words) => {
      if (i % 2 === 1) pairs.push([words[i - 1]!, word]);
      return pairs;
    }, []),
);

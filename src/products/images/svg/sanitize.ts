import { escapeXml, readXml } from "./xml.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Elements that draw. All other elements are removed with their content. */
const elements = words(`
  svg g defs symbol use switch a title desc style view
  path rect circle ellipse line polyline polygon text tspan textPath image
  linearGradient radialGradient stop pattern clipPath mask marker
  animate animateMotion animateTransform set mpath
  filter feBlend feColorMatrix feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap
  feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology
  feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence`);

const attributes = words(`
  id class lang style transform href viewBox preserveAspectRatio version requiredExtensions systemLanguage
  x y z dx dy x1 y1 x2 y2 cx cy r rx ry fx fy fr width height d points pathLength rotate textLength lengthAdjust
  startOffset method spacing side refX refY markerWidth markerHeight markerUnits orient offset
  gradientUnits gradientTransform spreadMethod patternUnits patternContentUnits patternTransform
  clipPathUnits maskUnits maskContentUnits filterUnits primitiveUnits
  in in2 result mode type values tableValues slope intercept amplitude exponent operator k1 k2 k3 k4 order kernelMatrix
  divisor bias targetX targetY edgeMode preserveAlpha surfaceScale diffuseConstant specularConstant specularExponent
  limitingConeAngle pointsAtX pointsAtY pointsAtZ azimuth elevation scale xChannelSelector yChannelSelector
  stdDeviation radius baseFrequency numOctaves seed stitchTiles
  attributeName attributeType begin dur end min max restart repeatCount repeatDur fill calcMode keyTimes keySplines
  keyPoints path from to by additive accumulate origin
  alignment-baseline baseline-shift clip-path clip-rule color color-interpolation color-interpolation-filters cursor
  direction display dominant-baseline fill-opacity fill-rule filter flood-color flood-opacity font-family font-size
  font-size-adjust font-stretch font-style font-variant font-weight image-rendering isolation letter-spacing
  lighting-color marker-end marker-mid marker-start mask mask-type mix-blend-mode opacity overflow paint-order
  pointer-events shape-rendering stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap
  stroke-linejoin stroke-miterlimit stroke-opacity stroke-width text-anchor text-decoration text-rendering
  transform-origin unicode-bidi vector-effect visibility word-spacing writing-mode
  xlink:href xml:lang xml:space`);

/** Returns an SVG without scripts and external references. Throws `MalformedXml` for malformed input. */
export function sanitizeSvg(source: string): string {
  let out = "";
  /** Nesting depth inside a removed element. */
  let left = 0;
  let style: string | undefined;
  let isRoot = true;
  for (const token of readXml(source)) {
    if (token.kind === "open") {
      if (left > 0 || style !== undefined || !isKept(token)) left += token.isEmpty ? 0 : 1;
      else if (token.name === "style") style = token.isEmpty ? undefined : "";
      else {
        const namespaces = isRoot
          ? ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
          : "";
        out += `<${token.name}${namespaces}${attributesOf(token)}${token.isEmpty ? "/" : ""}>`;
      }
      isRoot = false;
    } else if (token.kind === "text") {
      if (left > 0) continue;
      if (style === undefined) out += escapeXml(token.text);
      else style += token.text;
    } else if (left > 0) left -= 1;
    else if (style === undefined) out += `</${token.name}>`;
    else {
      if (isHarmlessStyle(style)) out += `<style>${escapeXml(style)}</style>`;
      style = undefined;
    }
  }
  return out;
}

interface Element {
  name: string;
  attributes: ReadonlyMap<string, string>;
}

/** Prefixed names are removed, since prefixes are not resolved. Animations may not change links. */
const isKept = ({ name, attributes: given }: Element): boolean =>
  elements.has(name) && !/href$/i.test(given.get("attributeName")?.trim() ?? "");

function attributesOf({ name, attributes: given }: Element): string {
  let out = "";
  for (const [key, value] of given) {
    if (!attributes.has(key)) continue;
    const isKept = key.endsWith("href") ? isInside(value, name) : isHarmlessStyle(value);
    if (isKept) out += ` ${key}="${escapeXml(value)}"`;
  }
  return out;
}

/** A reference within the document, or an embedded image. */
const isInside = (link: string, name: string): boolean =>
  /^\s*#/.test(link) ||
  (name === "image" && /^\s*data:image\/(?:png|jpe?g|gif|webp);base64,[\w+/=\s]*$/i.test(link));

/** CSS without external references. Escapes could hide one, so they are refused. */
const isHarmlessStyle = (css: string): boolean =>
  !/\\|@import|@namespace|javascript:|expression\(|image-set\(|\bsrc\(|url\(\s*(?!["']?#)/i.test(css);

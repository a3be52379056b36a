import { fc } from "../../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { probeSvg } from "./probe.ts";
import { sanitizeSvg } from "./sanitize.ts";
import { MalformedXml } from "./xml.ts";
import { cpuMs } from "../../../../test/helpers/cpu-ms.ts";

const svg = (inner: string, root = ""): string =>
  `<svg xmlns="http://www.w3.org/2000/svg"${root}>${inner}</svg>`;
const clean = (inner: string): string =>
  sanitizeSvg(svg(inner))
    .replace(/^<svg[^>]*>/, "")
    .replace(/<\/svg>$/, "");

describe("drawing elements stay", () => {
  it.each([
    '<g id="a" transform="translate(1 2)"><path d="M0 0h10" fill="url(#b)" stroke-width="2"/></g>',
    '<linearGradient id="b"><stop offset="0" stop-color="red"/></linearGradient>',
    "<style>.a{fill:url(#b)}</style>",
    '<use xlink:href="#a" x="1"/><a href="#a"><text x="1">a &lt; b &amp; c</text></a>',
    '<image href="data:image/png;base64,iVBORw0KGgo=" width="4" height="4"/>',
    '<circle r="4"><animate attributeName="r" values="1;4" dur="1s" repeatCount="indefinite"/></circle>',
    '<filter id="f"><feGaussianBlur stdDeviation="2"/></filter>',
    "<title>é 😀</title>",
  ])("%s", (inner) => expect(clean(inner)).toBe(inner));
});

describe("scripts and external references are removed", () => {
  it.each([
    ["<script>alert(1)</script>", ""],
    ["<ScRiPt>alert(1)</ScRiPt>", ""],
    ['<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>', ""],
    ['<g onload="x()" onclick="x()"/>', "<g/>"],
    ['<a href="javascript:x()"><g/></a>', "<a><g/></a>"],
    ['<a href="java&#10;script:x()"/>', "<a/>"],
    ['<a xlink:href=" JaVaScRiPt:x()"/>', "<a/>"],
    ['<image href="https://evil.example/a.png"/><use href="//evil.example/a.svg#b"/>', "<image/><use/>"],
    ['<image href="data:image/svg+xml;base64,PHN2Zz4="/>', "<image/>"],
    ['<use href="data:image/png;base64,iVBORw0KGgo="/>', "<use/>"],
    ["<foreignObject><iframe src='https://evil.example'/></foreignObject>", ""],
    ["<style>@import 'https://evil.example/a.css';</style>", ""],
    ["<style>a{background:url(https://evil.example)}</style>", ""],
    ["<style><![CDATA[a{background:\\75rl(https://evil.example)}]]></style>", ""],
    ["<style>a{}<g/><script/>b{}</style>", "<style>a{}b{}</style>"],
    ['<g style="fill:url( &quot;https://evil.example&quot; )" fill="url(x)"/>', "<g/>"],
    ['<g style="background:image-set(&quot;https://evil.example&quot; 1x)"/>', "<g/>"],
    ['<a><set attributeName="xlink:href" to="javascript:x()"/></a>', "<a></a>"],
    ['<animate attributeName="href" values="javascript:x()"/>', ""],
    ["<handler>x()</handler><iframe/><embed/><object/><audio/><metadata>m</metadata>", ""],
    ["<!-- <script> --><?php x ?><g/>", "<g/>"],
    ["<desc><![CDATA[<script>x()</script>]]></desc>", "<desc>&lt;script&gt;x()&lt;/script&gt;</desc>"],
    ['<g xmlns="http://www.w3.org/1999/xhtml" xml:base="https://evil.example"/>', "<g/>"],
  ])("%s", (inner, left) => expect(clean(inner)).toBe(left));
});

it("expands no entities: custom entities are dropped, and nested ones are refused", () => {
  const secret = `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd"><!-- ]> -->]>${svg('<text a="&x;">&x;!</text>')}`;
  expect(sanitizeSvg(secret)).toMatch(/<text>!<\/text>/);
  const laughs = Array.from({ length: 30 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join(
    "",
  );
  const beganMs = cpuMs();
  const bomb = `<!DOCTYPE svg [<!ENTITY l0 "ha">${laughs}]>${svg("&l30;")}`;
  expect(() => sanitizeSvg(bomb)).toThrow("its entities refer to others");
  expect(() => probeSvg(bomb)).toThrow(MalformedXml);
  expect(cpuMs() - beganMs).toBeLessThan(200);
});

it.each([
  ["<svg", "well-formed"],
  ["<svg><g></svg>", "closes nothing"],
  ["<svg/><svg/>", "more than one root"],
  ["<svg/>text", "outside"],
  ["<svg a='1' a='2'/>", "repeated"],
  ["<svg>a & b</svg>", "stands alone"],
  ["<g>".repeat(300), "nested too deeply"],
  ["", "too early"],
  ["<!DOCTYPE svg [", "too early"],
])("refuses %.30s", (source, words) => expect(() => sanitizeSvg(source)).toThrow(words));

it.each([
  [' width="40" height="30px"', 40, 30],
  [' viewBox="0 0 64.4,32"', 64, 32],
  [' width="100%" height="1e9" viewBox="0 0 8 4"', 8, 4],
  ["", 300, 150],
  [' width="100000" height="1"', 100_000, 1],
])("reads its size from the root: %s", (root, width, height) => {
  expect(probeSvg(`<?xml version="1.0"?>\n<!-- c -->${svg("<g>", root)}`)).toEqual({ width, height });
});

it("is idempotent, and handles any text", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "<g>",
      "</g>",
      "<svg>",
      "</svg>",
      '<a href="',
      "&lt;",
      "&#60;",
      "<![CDATA[",
      "]]>",
      "<style>",
    ),
    fc.constantFrom(
      "</style>",
      "<script>",
      "</script>",
      '" onload="x',
      "'",
      '"',
      "/>",
      ">",
      "<!--",
      "-->",
      "url(",
      "\\",
    ),
    fc.string({ maxLength: 6, unit: "binary" }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      let once: string;
      try {
        once = sanitizeSvg(svg(pieces.join("")));
      } catch (error) {
        if (error instanceof MalformedXml) return;
        throw error;
      }
      expect(sanitizeSvg(once)).toBe(once);
      expect(once).not.toMatch(/<script|<[^>]*\sonload="|<!|<\?/i);
    }),
    { numRuns: 3000 },
  );
});

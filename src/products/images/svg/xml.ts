/** Tokens of an XML text, in order. Comments, instructions and the document type are omitted. */
export type XmlToken =
  | { kind: "open"; name: string; attributes: Map<string, string>; isEmpty: boolean }
  | { kind: "close"; name: string }
  | { kind: "text"; text: string };

export class MalformedXml extends Error {}

const predefined: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const depthMax = 256;

/**
 * Tokenizes XML without entity expansion: references to custom entities are dropped, and a document with
 * nested entities is refused.
 */
export function* readXml(source: string): Generator<XmlToken> {
  const open: string[] = [];
  let hasRoot = false;
  let at = source.startsWith("\ufeff") ? 1 : 0;
  while (at < source.length) {
    if (source[at] !== "<") {
      const end = source.indexOf("<", at);
      const text = source.slice(at, end < 0 ? source.length : end);
      if (open.length === 0 && text.trim() !== "")
        throw new MalformedXml("text stands outside of its element");
      yield { kind: "text", text: unescape(text) };
      at += text.length;
    } else if (source.startsWith("<!--", at)) at = after(source, "-->", at + 4);
    else if (source.startsWith("<?", at)) at = after(source, "?>", at + 2);
    else if (source.startsWith("<![CDATA[", at)) {
      const end = after(source, "]]>", at + 9);
      yield { kind: "text", text: source.slice(at + 9, end - 3) };
      at = end;
    } else if (source.startsWith("<!DOCTYPE", at) && !hasRoot) at = afterDocumentType(source, at + 9);
    else if (source.startsWith("</", at)) {
      const end = after(source, ">", at + 2);
      const name = source.slice(at + 2, end - 1).trimEnd();
      if (open.pop() !== name) throw new MalformedXml(`</${name.slice(0, 80)}> closes nothing`);
      yield { kind: "close", name };
      at = end;
    } else {
      if (open.length === 0 && hasRoot) throw new MalformedXml("it has more than one root");
      const tag = readTag(source, at + 1);
      if (!tag.isEmpty && open.push(tag.name) > depthMax) throw new MalformedXml("it is nested too deeply");
      hasRoot = true;
      at = tag.end;
      yield { kind: "open", name: tag.name, attributes: tag.attributes, isEmpty: tag.isEmpty };
    }
  }
  if (!hasRoot || open.length > 0) throw new MalformedXml("it ends too early");
}

const namePattern = /[^\s=<>/"'&]+/y;
const attributePattern = /\s+([^\s=<>/"'&]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;
const endPattern = /\s*(\/?)>/y;

function readTag(
  source: string,
  start: number,
): { name: string; attributes: Map<string, string>; isEmpty: boolean; end: number } {
  const name = match(namePattern, source, start)?.[0];
  if (name === undefined) throw new MalformedXml("an element has no name");
  const attributes = new Map<string, string>();
  let at = start + name.length;
  for (let found = match(attributePattern, source, at); found !== null;) {
    if (attributes.has(found[1]!)) throw new MalformedXml(`${found[1]!.slice(0, 80)} is repeated`);
    attributes.set(found[1]!, unescape(found[2] ?? found[3]!));
    at += found[0].length;
    found = match(attributePattern, source, at);
  }
  const end = match(endPattern, source, at);
  if (end === null) throw new MalformedXml(`the element ${name.slice(0, 80)} is not well-formed`);
  return { name, attributes, isEmpty: end[1] === "/", end: at + end[0].length };
}

function match(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

function after(source: string, what: string, from: number): number {
  const found = source.indexOf(what, from);
  if (found < 0) throw new MalformedXml("it ends too early");
  return found + what.length;
}

/**
 * The offset after the document type, which consists of quoted text, comments and declarations up to its
 * bracket.
 */
function afterDocumentType(source: string, from: number): number {
  const piece = /"[^"]*"|'[^']*'|<!--[\s\S]*?-->|[[\]>]|[^"'<[\]>]+|</y;
  let isInside = false;
  let declared = "";
  for (let at = from; ;) {
    const found = match(piece, source, at)?.[0];
    if (found === undefined) throw new MalformedXml("it ends too early");
    at += found.length;
    if (found === "[") isInside = true;
    else if (found === "]") isInside = false;
    else if (found === ">" && !isInside) {
      if (/[&%]/.test(declared)) throw new MalformedXml("its entities refer to others");
      return at;
    } else if (isInside && !found.startsWith("<!--")) declared += found;
  }
}

const unescape = (text: string): string =>
  text.includes("&")
    ? text.replaceAll(
        /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([^;&\s]{1,200}));|&/gi,
        (whole, decimal, hex, name) => {
          if (whole === "&") throw new MalformedXml("a & stands alone");
          if (name !== undefined) return predefined[name as string] ?? "";
          const point = Number.parseInt((decimal ?? hex) as string, decimal === undefined ? 16 : 10);
          if (point > 0x10ffff) throw new MalformedXml("a reference names no character");
          return String.fromCodePoint(point);
        },
      )
    : text;

/** Escapes text for an element or an attribute. Characters that XML does not allow are dropped. */
export const escapeXml = (text: string): string =>
  text
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

import { trimBlanks } from "./parts.ts";

/**
 * A part of a multipart body. Values that can repeat are lists, in order. All texts are the original bytes in
 * latin1.
 */
export interface BodyPart {
  names: readonly string[];
  filenames: readonly string[];
  contentTypes: readonly string[];
  contentDispositions: readonly string[];
  contentTransferEncodings: readonly string[];
  value: string;
}

/**
 * The parts of a body; empty if its content type is not multipart or has no boundary. In a truncated body,
 * the last part has the value so far, or is omitted if its headers are incomplete. Lines may end with LF
 * alone, because servers behind the edge accept such bodies too. Time is linear in the body's length.
 */
export function multipartParts(contentType: string, body: string): BodyPart[] {
  if (!/^[ \t]*multipart\//i.test(contentType)) return [];
  const [boundary = ""] = parametersOf(contentType, "boundary");
  if (boundary === "") return [];
  const parts: BodyPart[] = [];
  let open = nextDelimiter(body, boundary, 0);
  while (open !== undefined && !open.isLast) {
    const close = nextDelimiter(body, boundary, open.end);
    const part = readPart(body.slice(open.end, close?.start), close !== undefined);
    if (part !== undefined) parts.push(part);
    open = close;
  }
  return parts;
}

/** A delimiter line with the preceding line end, which is not part of the value. */
interface Delimiter {
  start: number;
  end: number;
  isLast: boolean;
}

/** The next delimiter at or after `from`, which must be the beginning of a line. */
function nextDelimiter(body: string, boundary: string, from: number): Delimiter | undefined {
  const dashed = `--${boundary}`;
  for (let line = from; ;) {
    if (body.startsWith(dashed, line)) {
      const after = line + dashed.length;
      const isLast = body.startsWith("--", after);
      const end = isLast ? after + 2 : endOfLine(body, after);
      if (end !== undefined) {
        const isAfterCr = line >= from + 2 && body[line - 2] === "\r";
        return { start: Math.max(from, line - (isAfterCr ? 2 : 1)), end, isLast };
      }
    }
    const newline = body.indexOf("\n", line);
    if (newline === -1) return undefined;
    line = newline + 1;
  }
}

/** The beginning of the next line, or the end of the body, if the rest of this line is blank. */
function endOfLine(body: string, from: number): number | undefined {
  let at = from;
  while (body[at] === " " || body[at] === "\t") at++;
  if (body[at] === "\r") at++;
  if (at >= body.length) return body.length;
  return body[at] === "\n" ? at + 1 : undefined;
}

/** Undefined if the headers are incomplete. A closed part may consist of headers only. */
function readPart(text: string, isClosed: boolean): BodyPart | undefined {
  // A part without headers begins with the empty line.
  const end = /^\r?\n|\r?\n\r?\n/.exec(text) ?? (isClosed ? { index: text.length, 0: "" } : null);
  if (end === null) return undefined;
  const headers = text
    .slice(0, end.index)
    .replaceAll(/\r?\n[ \t]+/g, " ")
    .split(/\r?\n/)
    .map((line) => [lineName(line), trimBlanks(line.slice(line.indexOf(":") + 1))] as const);
  const all = (wanted: string): string[] =>
    headers.flatMap(([name, value]) => (name === wanted ? [value] : []));
  const dispositions = all("content-disposition");
  return {
    names: dispositions.flatMap((each) => parametersOf(each, "name")),
    filenames: dispositions.flatMap((each) => parametersOf(each, "filename")),
    contentTypes: all("content-type"),
    contentDispositions: dispositions,
    contentTransferEncodings: all("content-transfer-encoding"),
    value: text.slice(end.index + end[0].length),
  };
}

const lineName = (line: string): string =>
  trimBlanks(line.slice(0, Math.max(line.indexOf(":"), 0))).toLowerCase();

/**
 * The values of a parameter: `form-data; name="a"` has the name `a`. A backslash escapes only itself and the
 * quotation mark.
 */
function parametersOf(header: string, wanted: string): string[] {
  const parameters = header.matchAll(
    /;[ \t]*([^ \t=;"]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\[^])*)"?|([^ \t;,]*))/g,
  );
  return [...parameters].flatMap(([, name, quoted, plain]) =>
    name!.toLowerCase() === wanted ? [quoted?.replaceAll(/\\(["\\])/g, "$1") ?? plain!] : [],
  );
}

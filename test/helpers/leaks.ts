import { ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Http1Response } from "../../src/edge/http-server/response.ts";

/** The folders of the program, and of the data of tests, on this machine. */
const places = [process.cwd(), join(tmpdir(), "selvedge-")];

/** Words of file systems, databases, V8 and libraries, which say what went wrong inside. */
const insideWords = [
  /\bE(?:NOENT|ACCES|PERM|NOSPC|DQUOT|ISDIR|NOTDIR|EXIST|MFILE|IO|ROFS|CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|ADDRINUSE)\b/,
  /SQLITE_|SQLSTATE|constraint failed|no such (?:table|column)|has no column|duplicate key value|cannot rollback|database is locked/,
  /relation "|violates \w+(?:-\w+)? constraint|syntax error at or near|Connection terminated|connect timeout/,
  /node_modules|node:internal|file:\/\/\/|\n\s+at .*(?:node:|\(\/)/,
  /is not valid JSON|in JSON at position|Unexpected end of JSON|Cannot (?:read|set) propert|is not iterable|is not a constructor/,
  /Vips[A-Z]|libvips|Input file|UND_ERR|ERR_[A-Z]{3,}/,
];

/** The errors of D1, which are SQLite's words about the caller's own SQL. */
const isOfD1 = /"code": ?7500\b|\bD1_(?:EXEC_)?ERROR: /;

/** The parts of a text that reveal this machine or the inside of the program. An answer that is no error may reveal the latter. */
export function leaksIn(text: string, isError: boolean): string[] {
  const found = places.filter((place) => text.includes(place));
  if (isError && !isOfD1.test(text))
    found.push(...insideWords.flatMap((words) => words.exec(text)?.[0] ?? []));
  return found;
}

const textMax = 256 * 1024;
type AnyResponse = (ServerResponse | Http2ServerResponse) & { _header?: string | null };
const bodies = new WeakMap<object, string>();

/** The head, however it was given. */
const headOf = (answer: AnyResponse): string =>
  answer._header ??
  Object.entries(answer.getHeaders())
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join("\r\n");

/** Of the API, of deliveries, of error pages, or of a binding; what origins and scripts say is their own. */
const isOurs = (head: string): boolean =>
  /^(?:x-request-id|cf-resized|x-selvedge-error|server: selvedge)/im.test(head);
const isText = (head: string): boolean => /^content-type: *(?:text\/|application\/json)/im.test(head);

/** The leaks in this process since the list was emptied. */
export const leaks: string[] = ((globalThis as { leaks?: string[] }).leaks ??= []);

/** From now on, looks into every answer of this process's servers, until the returned function is called. */
export function watchAnswers(): () => void {
  const take = (answer: AnyResponse, chunk: unknown): void => {
    if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) return;
    const before = bodies.get(answer) ?? "";
    if (before.length < textMax)
      bodies.set(answer, before + Buffer.from(chunk as Uint8Array).toString("latin1"));
  };
  const look = (answer: AnyResponse): void => {
    const head = headOf(answer);
    if (!isOurs(head)) return;
    const errorHeader = /^x-selvedge-error: (.*)$/im.exec(head)?.[1];
    const isError = answer.statusCode >= 400;
    const found = [
      ...(isText(head) ? leaksIn(bodies.get(answer) ?? "", isError) : []),
      ...(errorHeader === undefined ? [] : leaksIn(unescaped(errorHeader), true)),
    ];
    for (const leak of found)
      leaks.push(`${answer.statusCode} says ${leak}: ${(bodies.get(answer) ?? head).slice(0, 500)}`);
  };
  const classes = [ServerResponse, Http2ServerResponse, Http1Response];
  const prototypes = classes.map(({ prototype }) => prototype as unknown as AnyResponse);
  const restore = prototypes.map((prototype) => {
    // oxlint-disable-next-line typescript/unbound-method -- called with their own `this` below
    const { write, end } = prototype;
    prototype.write = function (this: AnyResponse, ...args: unknown[]) {
      take(this, args[0]);
      return Reflect.apply(write, this, args) as boolean;
    };
    prototype.end = function (this: AnyResponse, ...args: unknown[]) {
      take(this, args[0]);
      const ended = Reflect.apply(end, this, args) as never;
      look(this);
      return ended;
    };
    return () => Object.assign(prototype, { write, end });
  });
  return () => {
    for (const each of restore) each();
  };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

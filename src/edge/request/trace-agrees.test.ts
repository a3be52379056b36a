import { connect } from "node:net";
import { inspect } from "node:util";
import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import {
  fields,
  requestFields,
  decodeUtf8,
  type FieldSource,
  type RequestDescription,
} from "../../rules/language.ts";
import { readRequest } from "../../rules/request/read-request.ts";
import { startEdge, startOrigin } from "./test-edge.ts";

/* `selvedge rules trace` shows the same request that rules see at the edge. */

/** Random values, and properties of the connection, which the text of a request does not have. */
const unpredictable = new Set([
  "cf.ray_id",
  "cf.random_seed",
  "http.request.timestamp.sec",
  "http.request.timestamp.msec",
]);
const names = [...fields.values()].flatMap(({ name, phase }) =>
  phase === "request" && !unpredictable.has(name) ? [name] : [],
);

/** The fields in which two sources differ, with the beginning of each value. */
const differing = (one: FieldSource, other: FieldSource): string[][] =>
  names.flatMap((name) => {
    const shown = [one, other].map((source) =>
      inspect(source[name], { maxStringLength: null, maxArrayLength: null }),
    );
    return shown[0] === shown[1] ? [] : [[name, ...shown.map((each) => each.slice(0, 200))]];
  });

const bytes = (characters: string, max: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...characters.split("")), maxLength: max });
const token = fc.string({ unit: fc.constantFrom(..."abzAZ09-_".split("")), minLength: 1, maxLength: 8 });
const value = bytes("ab Z09=&;,:%+\"'q*/.\t\u00e9\u00ff\u0080\u00a0", 20);
const target = fc
  .tuple(bytes("ab/.%2F~+", 12), fc.option(bytes("a=b&c%20+?/", 16)))
  .map(([path, query]) => `/${path}${query === null ? "" : `?${query}`}`);
const known = fc.constantFrom(
  ...["Cookie", "cookie", "User-Agent", "Referer", "X-Forwarded-For", "Accept-Language", "Accept"],
);
const header = fc.tuple(
  fc.oneof(
    known,
    token.map((name) => `x-${name}`),
  ),
  value,
);
/** Multipart forms, complete and truncated, below and above the limit. */
const multipart = fc
  .tuple(
    fc.array(
      fc.tuple(
        bytes('ab;"\\ \u00e9\u00a0', 6),
        fc.subarray([
          "; filename=a.txt",
          "\r\nContent-Type: text/plain",
          "\r\ncontent-transfer-encoding: base64\r\nContent-Type:\u00a0x ",
          '\r\nContent-Disposition: form-data;\r\n name="again"',
        ]),
        fc.oneof(bytes("ab\r\n-x\u00e9", 10), fc.constant("z".repeat(100_000))),
      ),
      { maxLength: 4 },
    ),
    fc.nat(60),
  )
  .map(([parts, cut]) => {
    const text = parts
      .map(
        ([name, more, content]) =>
          `--x\r\nContent-Disposition: form-data; name="${name}"${more.join("")}\r\n\r\n${content}\r\n`,
      )
      .join("");
    const whole = `${text}--x--\r\n`;
    return whole.slice(0, Math.max(whole.length - Math.max(cut - 30, 0), 0));
  });
const body = fc.option(
  fc.tuple(
    fc.constantFrom(
      "application/x-www-form-urlencoded",
      "Application/X-WWW-Form-Urlencoded; charset=utf-8",
      "text/plain",
      " multipart/form-data; boundary=x",
    ),
    fc.oneof(
      bytes("a=b&c%20+\u00e9\r\n\0", 40),
      multipart,
      fc.constantFrom("x".repeat(200_000), `a=${"y".repeat(131_070)}`),
    ),
  ),
);

async function send(port: number, request: string): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume().write(request, "latin1");
  await new Promise((resolve) => socket.on("close", resolve));
}

it("agrees with the edge on every field of any request", async () => {
  const { port: originPort } = await startOrigin((incoming, response) => {
    incoming.resume().on("end", () => response.end());
  });
  let seen: RequestDescription | undefined;
  const matches = Object.assign(
    (describe: () => RequestDescription) => {
      seen = describe();
      return true;
    },
    { readsBody: true },
  );
  const { port } = await startEdge({ originPort, rule: { matches } });
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "POST", "PUT", "OPTIONS"),
      target,
      fc.array(header, { maxLength: 6 }),
      body,
      async (method, path, headers, content) => {
        const lines = [["Host", "WWW.Example.com"], ...headers, ["Connection", "close"]];
        if (content !== null)
          lines.push(["Content-Type", content[0]], ["Content-Length", String(content[1].length)]);
        const rest = `${lines.map(([name, text]) => `${name}: ${text}\r\n`).join("")}\r\n${content?.[1] ?? ""}`;
        seen = undefined;
        await send(port, `${method} ${path} HTTP/1.1\r\n${rest}`);
        if (seen === undefined) return; // the edge refused the request, so no rule saw it
        compared++;
        // The full URL states that the request came without TLS.
        const text = `${method} http://WWW.Example.com${path} HTTP/1.1\r\n${rest}`;
        const traced = requestFields(readRequest(text, "127.0.0.1"));
        expect(differing(traced, requestFields(seen))).toEqual([]);
      },
    ),
    { numRuns: 300 },
  );
  expect(compared).toBeGreaterThan(200);
});

it("agrees with a request given as JSON", () => {
  fc.assert(
    fc.property(
      target,
      fc.array(fc.tuple(token, fc.string({ unit: "grapheme", maxLength: 10 }))),
      fc.string({ unit: "grapheme" }),
      fc.record({ country: fc.constantFrom("DE", "US"), asn: fc.nat(1e6), colo: fc.constant("DEV") }),
      (path, headers, raw, cf) => {
        const latin1 = (text: string): string => Buffer.from(text).toString("latin1");
        const description: RequestDescription = {
          method: "POST",
          url: latin1(path),
          headers: headers.flat().map(latin1),
          tls: true,
          ip: "192.0.2.1",
          httpVersion: "HTTP/2",
          cf,
          body: { raw: latin1(raw), size: Buffer.byteLength(raw), truncated: false },
        };
        const json = JSON.stringify({
          ...description,
          url: path,
          headers,
          body: { ...description.body, raw },
        });
        const traced = requestFields(readRequest(Buffer.from(json).toString("latin1")));
        expect(differing(traced, requestFields(description))).toEqual([]);
        expect(decodeUtf8(traced["http.request.body.raw"] as string)).toBe(raw);
      },
    ),
  );
});

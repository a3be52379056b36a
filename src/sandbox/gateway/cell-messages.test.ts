import { fc } from "../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { readCollected } from "../../workers/tail/collected.ts";
import { readDispatch, readOutbound } from "../../workers/runtime/read-dispatch.ts";
import { errorHeaders } from "./error-headers.ts";
import { headerText, MalformedError, parseThrown, readChild, readIds, readThrown } from "./cell-messages.ts";
import { openMessage, readFetch, readHead } from "./channel-messages.ts";
import { protocolLimits } from "../settings.ts";

const malformedOr = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError);
    return undefined;
  }
};

/** Objects with these property names and values of any kind. */
const recordOf = (...names: string[]): fc.Arbitrary<Record<string, unknown>> =>
  fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] });
const value = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("GET", "https://a.example/", 200, Infinity, Number.NaN, -1, "x".repeat(100_000)),
  fc.array(fc.string({ unit: "binary" })),
);
const deep = "[".repeat(5000) + "]".repeat(5000);

describe("any bytes of a cell", () => {
  it("headers are text, or refused", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        malformedOr(() => headerText("it", text));
        expect(headerText("it", encodeURIComponent(text.toWellFormed()))).toBe(text.toWellFormed());
      }),
    );
    expect(() => headerText("the binding", "%ff")).toThrow("Expected percent-encoded text for the binding.");
    expect(() => headerText("the binding", undefined)).toThrow(MalformedError);
  });

  it("a thrown value becomes an error that can be sent", () => {
    fc.assert(
      fc.property(recordOf("name", "message", "stack"), (given) => {
        const thrown = readThrown(given);
        expect(parseThrown(Buffer.from(JSON.stringify(given)))).toBeDefined();
        const sent = errorHeaders(thrown);
        expect(sent.join("").length).toBeLessThan(80_000);
        expect(sent.every((each) => /^[\x20-\x7e]*$/.test(each))).toBe(true);
      }),
    );
    for (const bytes of ["", "null", "5", "[]", deep])
      expect(parseThrown(Buffer.from(bytes)).name).toBe("Error");
  });

  it("a dispatch names a script, with limits that are numbers", () => {
    const limits = fc.oneof(value, recordOf("cpuMs", "subRequests"));
    fc.assert(
      fc.property(fc.record({ script: value, limits }), (given) => {
        const read = malformedOr(() => readDispatch(JSON.stringify(given)));
        if (read === undefined) return;
        expect(typeof read.script).toBe("string");
        for (const limit of Object.values(read.limits ?? {})) expect(limit).toBeGreaterThanOrEqual(0);
      }),
    );
    for (const text of ["", "[]", "null", '{"script":{}}', '{"script":"a","limits":{"cpuMs":"1"}}', deep])
      expect(() => readDispatch(text), text.slice(0, 50)).toThrow(MalformedError);
    expect(readOutbound("")).toBeUndefined();
    expect(() => readOutbound(`{"a":${deep}}`)).toThrow(MalformedError);
  });

  it("a dispatched run has all required fields as text", () => {
    const names = ["child", "run", "binding", "options", "outbound", "id"];
    fc.assert(
      fc.property(recordOf(...names), (given) => {
        const child = malformedOr(() => readChild(JSON.stringify(given)));
        if (child !== undefined) for (const name of names) expect(child).toHaveProperty(name, given[name]);
      }),
    );
  });

  it("loaded scripts are ids", () => {
    for (const text of ["", "{}", "[5]", deep])
      expect(() => readIds(Buffer.from(text))).toThrow(MalformedError);
    expect(readIds(Buffer.from('["a"]'))).toEqual(new Set(["a"]));
  });

  it("logs can be written as JSON", () => {
    const entry = fc.oneof(value, recordOf("level", "message", "timestamp", "name", "stack"));
    const logs = recordOf("logs", "exceptions", "truncated");
    fc.assert(
      fc.property(logs, fc.array(entry), (given, entries) => {
        const read = malformedOr(() => readCollected(JSON.stringify({ ...given, logs: entries })));
        expect(JSON.stringify(read ?? {})).toBeDefined();
      }),
    );
    expect(() => readCollected(`{"logs":[{"level":"log","message":${deep},"timestamp":0}]}`)).toThrow();
    expect(() => readCollected(`{"logs":[${"{},".repeat(200_000)}{}]}`)).toThrow(MalformedError);
  });

  it("messages of a channel are valid or refused", () => {
    const head = recordOf("type", "run", "id", "method", "url", "headers", "status", "statusText", "from");
    fc.assert(
      fc.property(head, fc.boolean(), fc.uint8Array(), (given, isBinary, noise) => {
        const json = Buffer.from(JSON.stringify(given));
        const length = Buffer.alloc(4);
        length.writeUInt32BE(json.length);
        const whole = isBinary ? Buffer.concat([length, json, noise]) : json;
        const opened = malformedOr(() => openMessage(whole, isBinary));
        expect(opened === undefined).toBe(json.length > protocolLimits.channelHeadLength);
        if (opened === undefined) return;
        expect(opened.body?.equals(noise)).toBe(isBinary ? true : undefined);
        const fetch = malformedOr(() => readFetch(opened.message));
        if (fetch !== undefined) expect(fetch.headers.every((each) => typeof each === "string")).toBe(true);
        const answer = malformedOr(() => readHead(opened.message));
        if (answer !== undefined)
          expect(answer.status).toSatisfy((status: number) => status >= 200 && status < 600);
        malformedOr(() => openMessage(Buffer.from(noise), isBinary));
      }),
    );
  });

  it.each(["CONNECT", "GET\r\nx: y", "", "x".repeat(33)])("no channel sends the method %j", (method) => {
    expect(() => readFetch({ id: 1, method, url: "https://a.example/", headers: [] })).toThrow(
      MalformedError,
    );
  });

  it("no header of a channel has a line break in it", () => {
    for (const each of ["a\r\nb", "a\0", "ü\n"])
      expect(() => readHead({ status: 200, statusText: "", headers: ["x", each] })).toThrow(MalformedError);
    expect(readHead({ status: 200, statusText: "", headers: ["x", "ü"] }).headers).toEqual(["x", "Ã¼"]);
  });
});

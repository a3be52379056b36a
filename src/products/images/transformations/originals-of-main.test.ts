import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { clock } from "../../../platform/timers/clock.ts";
import type { EdgeHttpRequest } from "../../../edge/request/handlers.ts";
import { idOf } from "../../../platform/tracing/spans/ids.ts";
import { KeptSpan } from "../../../platform/tracing/spans/span.ts";
import { AnsweredElsewhere } from "../delivery/delivery.ts";
import { StoredGone } from "../delivery/respond.ts";
import { OriginalsOfMain } from "./originals-of-main.ts";
import type { Original } from "./originals.ts";
import { Transformations } from "./transformations.ts";

/** Main with one picture, and the number of questions that it got. */
function newMain(lifeMs: number): { calls: ProcessCalls; questions: () => number } {
  let questions = 0;
  const ask = async (): Promise<unknown> => {
    questions += 1;
    return { original: { folder: "a" }, freshUntil: clock.now() + lifeMs };
  };
  return { calls: { ask } as unknown as ProcessCalls, questions: () => questions };
}
const wanted = {
  owner: { id: "zone", accountId: "account" },
  url: new URL("http://a.example/"),
  headers: [],
  send: async () => {},
};
const use = async <T>(originals: OriginalsOfMain, work: (original: Original) => Promise<T>): Promise<T> =>
  originals.use({ ...wanted, signal: new AbortController().signal }, work);
const folder = async (original: Original): Promise<string> => original.folder;

it("asks main once while a picture is fresh, and again after", async () => {
  const [lasting, stale] = [newMain(60_000), newMain(0)];
  for (const { calls, questions } of [lasting, stale]) {
    const originals = new OriginalsOfMain(calls);
    for (let time = 0; time < 3; time++) expect(await use(originals, folder)).toBe("a");
    expect(questions()).toBe(calls === lasting.calls ? 1 : 3);
  }
});

it("leaves a request to main when the file of a picture is gone, and asks again", async () => {
  const { calls, questions } = newMain(60_000);
  const originals = new OriginalsOfMain(calls);
  const gone = async (): Promise<never> => Promise.reject(new StoredGone());
  await expect(use(originals, gone)).rejects.toThrow(AnsweredElsewhere);
  expect(await use(originals, folder)).toBe("a");
  expect(questions()).toBe(2);
});

it("leaves a request to main without its answer", async () => {
  const calls = { ask: async () => Promise.reject(new Error("main is away")) } as unknown as ProcessCalls;
  await expect(use(new OriginalsOfMain(calls), folder)).rejects.toThrow(AnsweredElsewhere);
});

it("passes a request on to main without a failure in the trace of the request", async () => {
  const calls = { ask: async () => null } as unknown as ProcessCalls;
  const passed: unknown[] = [];
  const transformations = new Transformations({
    originals: new OriginalsOfMain(calls),
    settings: () => ({ mode: "on", allowedOrigins: "" }),
    passOn: async (edgeRequest: EdgeHttpRequest) => void passed.push(edgeRequest),
  } as unknown as ConstructorParameters<typeof Transformations>[0]);
  const spans: KeptSpan[] = [];
  const edgeRequest = {
    request: { method: "GET", headers: {} },
    response: new EventEmitter(),
    path: "/cdn-cgi/image/width=80/picture.png",
    authority: "www.shop.example",
    zone: { id: "zone", name: "shop.example" },
    span: new KeptSpan(
      { add: (span) => void spans.push(span), attribute: () => "" },
      "request",
      "internal",
      idOf("a".repeat(32)),
    ),
  };
  expect(await transformations.handler(edgeRequest as unknown as EdgeHttpRequest)).toBe(true);
  expect(passed).toEqual([edgeRequest]);
  expect(spans.map(({ name, error }) => [name, error])).toEqual([["image.transform", undefined]]);
});

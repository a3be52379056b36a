import { expect, it } from "vitest";
import type { ObjectMessage } from "../gateway/object-messages.ts";
import { answerActing } from "./acting-messages.ts";
import type { OpenCell } from "./open-cell.ts";
import { StandingTokens } from "./standing.ts";

it("a cell may have a limited number of bookmark requests at the same time", async () => {
  const object = { namespace: "a".repeat(32), id: "b".repeat(64) };
  const tokens = new StandingTokens();
  const objects: { onMessage?: (token: string, message: ObjectMessage) => Promise<string | undefined> } = {};
  const open = { cell: { gateway: { objects }, isDead: false }, namespaces: new Set([object.namespace]) };
  const log = Promise.withResolvers<string>();
  const options = {
    alarm: async () => {},
    standing: async () => undefined,
    bookmark: async () => log.promise,
  };
  answerActing(open as unknown as OpenCell, tokens, options, async () => {});
  const ask = async (): Promise<string | undefined> =>
    objects.onMessage!(`${tokens.tokenOf(object)}.b1`, { kind: "bookmark", order: { of: "now" } });
  const asked = Array.from({ length: 100 }, ask);
  await expect(ask()).rejects.toThrow("Too many requests queued.");
  log.resolve("a bookmark");
  expect(new Set(await Promise.all(asked))).toEqual(new Set(["a bookmark"]));
  expect(await ask()).toBe("a bookmark");
});

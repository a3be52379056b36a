import { pino } from "pino";
import { expect, it } from "vitest";
import { capability, type Capability, type Platform } from "./capability.ts";
import type { Config } from "./platform/config/settings.ts";
import { capabilities } from "./capabilities.ts";
import { edgeCapabilities } from "./edge-capabilities.ts";
import { inOrderOfNeeds, partsOf, start } from "./start.ts";

const platform: Platform = {
  config: {} as Config,
  logger: pino({ level: "silent" }),
  apiChecks: {},
  reserved: undefined,
  own: { role: "single" },
};

/** Two capabilities that note every step of their lives. `failing` is the step of `second` that throws. */
function pair(notes: string[], failing?: string) {
  const step = (name: string): void => {
    notes.push(name);
    if (name === failing) throw new Error(`cannot ${name}`);
  };
  const first = capability({
    name: "first",
    needs: [],
    create() {
      step("create first");
      return { greeting: "hello" };
    },
    load: () => step("load first"),
    async listen() {
      step("listen first");
      return { announceEnd: () => step("announce the end"), close: () => step("stop listening first") };
    },
    run() {
      step("run first");
      return () => step("stop running first");
    },
    close: () => step("close first"),
  });
  const second = capability({
    name: "second",
    needs: [first],
    create({ greeting }) {
      step("create second");
      return { answer: `${greeting} yourself` };
    },
    load: ({ answer }) => step(`load second: ${answer}`),
    async listen() {
      step("listen second");
    },
    run: () => step("run second"),
    close: () => step("close second"),
  });
  return { first, second };
}

it("starts capabilities in the order of their needs and not of the list, and ends them in reverse", async () => {
  const notes: string[] = [];
  const { first, second } = pair(notes);
  const running = await start([second, first], platform);
  expect(running.services).toEqual({ greeting: "hello", answer: "hello yourself" });
  running.announceEnd();
  await running.close(0);
  expect(notes).toEqual([
    "create first",
    "create second",
    "load first",
    "load second: hello yourself",
    "listen first",
    "listen second",
    "run first",
    "run second",
    "announce the end",
    "stop running first",
    "stop listening first",
    "close second",
    "close first",
  ]);
});

it.each([
  ["create second", ["close first"]],
  ["load second: hello yourself", ["close second", "close first"]],
  ["listen second", ["stop listening first", "close second", "close first"]],
  ["run second", ["stop running first", "stop listening first", "close second", "close first"]],
])("a start that fails at %s ends what has begun, and throws the cause", async (failing, undone) => {
  const notes: string[] = [];
  const { first, second } = pair(notes, failing);
  await expect(start([first, second], platform)).rejects.toThrow(`cannot ${failing}`);
  expect(notes.slice(notes.indexOf(failing) + 1)).toEqual(undone);
});

it("ends the others when one cannot be ended, and reports it", async () => {
  const notes: string[] = [];
  const { first, second } = pair(notes, "close second");
  const { close } = await start([first, second], platform);
  await expect(close(0)).rejects.toThrow("Parts of the platform could not be closed");
  expect(notes.at(-1)).toBe("close first");
});

it("names the capabilities of a cycle, and one that is not listed", () => {
  const { first, second } = pair([]);
  const needs: Capability[] = [second];
  const third = capability({ name: "third", needs, create: () => ({}) });
  expect(() => inOrderOfNeeds([first, third])).toThrow(
    "Expected the capability second, which third needs, in the list",
  );
  needs.push(third);
  expect(() => inOrderOfNeeds([first, second, third])).toThrow("Capabilities need each other: third → third");
});

it("refuses two services with the same name", async () => {
  const { first } = pair([]);
  const other = capability({ name: "other", needs: [], create: () => ({ greeting: "hi" }) });
  await expect(start([first, other], platform)).rejects.toThrow(
    "Two capabilities create the service greeting",
  );
});

it("edge processes load the edge parts of all listed capabilities", () => {
  const names = (list: readonly Capability[]): string[] => partsOf(list, "edge").map(({ name }) => name);
  expect(names(edgeCapabilities)).toEqual(names(capabilities));
});

import { expect, it } from "vitest";
import { within } from "../../platform/util/ends-within.ts";
import { ObjectRefusal } from "../errors.ts";
import { overloadedCells } from "./faults.ts";
import { resetObject } from "./reset-object.ts";

const object = { namespace: "0", id: "1" };
const cellOf = (reset: () => Promise<void>, hasEnded: boolean) => ({
  cell: { isDead: false, reset, process: { exited: hasEnded ? Promise.resolve() : new Promise(() => {}) } },
});
type Hosts = Parameters<typeof resetObject>[0];
const logger = { warn: () => {} };
const lost = new ObjectRefusal("Network connection lost.", "retryable");
const broken = async (): Promise<void> => {
  throw Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" });
};

it("deletes an object in the next cell if its cell ends meanwhile", async () => {
  const cells = [cellOf(broken, true), cellOf(async () => {}, false)];
  await resetObject((async () => cells.shift()!) as unknown as Hosts, object, logger);
  expect(cells).toEqual([]);
});

const silent = async (): Promise<void> => within(1, new Promise(() => {}));
const refusing = async (): Promise<void> => {
  throw new Error("the cell answered a reset with 500");
};

it.concurrent.each([
  ["cell after cell ends", broken, true],
  ["a connection breaks", broken, false],
  ["a cell does not answer in time", silent, false],
  ["a cell answers with a fault", refusing, false],
])("says that the deletion may be repeated if %s", async (_, reset, hasEnded) => {
  const failed = resetObject((async () => cellOf(reset, hasEnded)) as unknown as Hosts, object, logger);
  await expect(failed).rejects.toEqual(lost);
});

it("says that nothing was done only if the first cell cannot be had", async () => {
  for (const [cells, error] of [
    [[], overloadedCells()],
    [[cellOf(broken, true)], lost],
  ] as const) {
    const left = [...cells];
    const next = async () => left.shift() ?? Promise.reject(overloadedCells());
    await expect(resetObject(next as unknown as Hosts, object, logger)).rejects.toEqual(error);
  }
});

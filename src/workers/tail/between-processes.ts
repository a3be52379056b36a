import type { MessageBus } from "../../platform/processes/message-bus.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { bounded } from "./bounded.ts";
import type { TailEvent } from "./event.ts";
import type { TailRecord, Tails, Watcher } from "./tails.ts";

const tailsTopic = "tails";
const eventTopic = "tail event";
/** Bytes on the way to main; further events are dropped. */
const waitingBytesMax = 4 * 1024 * 1024;

/** The data of a tail that edge processes need. */
type PublishedTail = Omit<TailRecord, "secretHash">;

/** Shares tails between main, which has the watchers, and edge processes, which send main the events of their runs. */
export function joinTails(tails: Tails, bus: MessageBus, { role }: OwnProcess): void {
  if (role === "main") listenToEdges(tails, bus);
  else if (role === "edge") followMain(tails, bus);
}

function listenToEdges(tails: Tails, bus: MessageBus): void {
  const published = (): PublishedTail[] =>
    [...tails.all()].map(({ id, accountId, scriptId, filters, expiresOn, creator }) => ({
      id,
      accountId,
      scriptId,
      filters,
      expiresOn,
      creator,
    }));
  bus.forJoiners(tailsTopic, published);
  let publishing: Promise<void> | undefined;
  // Changes in one turn of the event loop are sent together.
  const publishSoon = async (): Promise<void> => {
    await Promise.resolve();
    publishing = undefined;
    await bus.publish(tailsTopic, published());
  };
  tails.onChange(async () => (publishing ??= publishSoon()));
  bus.subscribe<{ id: string; event: TailEvent }>(eventTopic, ({ id, event }) => tails.deliver(id, event));
}

function followMain(tails: Tails, bus: MessageBus): void {
  // Main drops events of a tail whose watcher has not connected yet.
  const watcherOf = (id: string): Watcher => ({
    send: bounded(
      () => bus.waitingBytes <= waitingBytesMax,
      (text) => unawaited(bus.publish(eventTopic, { id, event: JSON.parse(text) as TailEvent })),
    ),
    end() {},
  });
  bus.subscribe<PublishedTail[]>(tailsTopic, (published) => {
    const ids = new Set(published.map(({ id }) => id));
    const known = new Set([...tails.all()].map(({ id }) => id));
    for (const id of known) if (!ids.has(id)) tails.drop(id);
    for (const tail of published)
      if (!known.has(tail.id)) tails.adopt({ ...tail, secretHash: noSecret }, watcherOf(tail.id));
  });
}

/** Watchers connect to main, which compares their secrets. */
const noSecret = Buffer.alloc(0);

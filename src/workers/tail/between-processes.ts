import type { ProcessNotes } from "../../platform/processes/notes.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { bounded } from "./bounded.ts";
import type { TailEvent } from "./event.ts";
import type { KnownTail, Tails, Watcher } from "./tails.ts";

const tailsTopic = "tails";
const eventTopic = "tail event";
/** Bytes on the way to main; further events are dropped. */
const waitingBytesMax = 4 * 1024 * 1024;

/** The data of a tail that edge processes need. */
type ToldTail = Omit<KnownTail, "secretHash">;

/** Shares tails between main, which has the watchers, and edge processes, which send main the events of their runs. */
export function joinTails(tails: Tails, notes: ProcessNotes, { role }: OwnProcess): void {
  if (role === "main") listenToEdges(tails, notes);
  else if (role === "edge") followMain(tails, notes);
}

function listenToEdges(tails: Tails, notes: ProcessNotes): void {
  const told = (): ToldTail[] =>
    [...tails.all()].map(({ id, accountId, scriptId, filters, expiresOn, creator }) => ({
      id,
      accountId,
      scriptId,
      filters,
      expiresOn,
      creator,
    }));
  notes.forJoiners(tailsTopic, told);
  let telling: Promise<void> | undefined;
  // Changes in one turn of the event loop are sent together.
  const tellSoon = async (): Promise<void> => {
    await Promise.resolve();
    telling = undefined;
    await notes.tell(tailsTopic, told());
  };
  tails.onChange(async () => (telling ??= tellSoon()));
  notes.on<{ id: string; event: TailEvent }>(eventTopic, ({ id, event }) => tails.tell(id, event));
}

function followMain(tails: Tails, notes: ProcessNotes): void {
  // Main drops events of a tail whose watcher has not connected yet.
  const watcherOf = (id: string): Watcher => ({
    tell: bounded(
      () => notes.waitingBytes <= waitingBytesMax,
      (text) => unawaited(notes.tell(eventTopic, { id, event: JSON.parse(text) as TailEvent })),
    ),
    end() {},
  });
  notes.on<ToldTail[]>(tailsTopic, (told) => {
    const ids = new Set(told.map(({ id }) => id));
    const known = new Set([...tails.all()].map(({ id }) => id));
    for (const id of known) if (!ids.has(id)) tails.drop(id);
    for (const tail of told)
      if (!known.has(tail.id)) tails.adopt({ ...tail, secretHash: noSecret }, watcherOf(tail.id));
  });
}

/** Watchers connect to main, which compares their secrets. */
const noSecret = Buffer.alloc(0);

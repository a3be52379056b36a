import type { ProcessNotes } from "../../platform/processes/notes.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { Quarantine, type QuarantineNews, type QuarantineState } from "./quarantine.ts";

/**
 * A quarantine that is known to all processes of the node: a script that stalls a cell of one of them would stall a cell
 * of each in turn. Each process counts good runs by itself, and one that trusts an owner again tells the others.
 */
export function sharedQuarantine(kind: string, runsToTrust: number, notes: ProcessNotes): Quarantine {
  const topic = `quarantine of ${kind}`;
  const quarantine = new Quarantine(runsToTrust, (news) => unawaited(notes.tell(topic, { news })));
  notes.on<{ news: QuarantineNews } | { state: QuarantineState }>(topic, (note, relay) => {
    if ("state" in note) quarantine.adopt(note.state);
    else quarantine.receive(note.news);
    relay();
  });
  notes.forJoiners(topic, () => ({ state: quarantine.state }));
  return quarantine;
}

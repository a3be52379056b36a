import type { MessageBus } from "../../platform/processes/message-bus.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { Quarantine, type QuarantineUpdate, type QuarantineState } from "./quarantine.ts";

/**
 * A quarantine that is known to all processes of the node: a script that stalls a cell of one of them would stall a cell
 * of each in turn. Each process counts good runs by itself, and one that trusts an owner again notifies the others.
 */
export function sharedQuarantine(kind: string, runsToTrust: number, bus: MessageBus): Quarantine {
  const topic = `quarantine of ${kind}`;
  const quarantine = new Quarantine(runsToTrust, (news) => unawaited(bus.publish(topic, { news })));
  bus.subscribe<{ news: QuarantineUpdate } | { state: QuarantineState }>(topic, (message, relay) => {
    if ("state" in message) quarantine.adopt(message.state);
    else quarantine.receive(message.news);
    relay();
  });
  bus.forJoiners(topic, () => ({ state: quarantine.state }));
  return quarantine;
}

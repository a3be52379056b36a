import { expect, it } from "vitest";
import { MessageBus } from "../../platform/processes/message-bus.ts";
import type { Quarantine } from "./quarantine.ts";
import { sharedQuarantine } from "./shared-quarantine.ts";

const runsToTrust = 3;

/** The quarantines of main and of two edge processes, whose messages go through main. */
function three(): { main: Quarantine; edges: [Quarantine, Quarantine]; join: () => Quarantine } {
  const inMain = new MessageBus();
  const inEdges: MessageBus[] = [];
  inMain.link.send = async (message) => {
    for (const bus of inEdges) void bus.deliver(JSON.parse(JSON.stringify(message)) as typeof message);
  };
  const join = (): Quarantine => {
    const bus = new MessageBus();
    const quarantine = sharedQuarantine("scripts", runsToTrust, bus);
    for (const message of inMain.messagesForJoiners())
      void bus.deliver(JSON.parse(JSON.stringify(message)) as typeof message);
    inEdges.push(bus);
    bus.link.send = async (message) =>
      inMain.deliver(JSON.parse(JSON.stringify(message)) as typeof message, () => {
        for (const other of inEdges)
          if (other !== bus) void other.deliver(JSON.parse(JSON.stringify(message)) as typeof message);
      });
    return quarantine;
  };
  const main = sharedQuarantine("scripts", runsToTrust, inMain);
  return { main, edges: [join(), join()], join };
}

it("an owner that one process quarantines is quarantined in all, until one process trusts it again", () => {
  const { main, edges, join } = three();
  const all = [main, ...edges];
  for (const first of all) {
    first.add("owner");
    expect(all.map((each) => each.has("owner"))).toEqual([true, true, true]);
    expect(join().has("owner")).toBe(true);
    for (let run = 0; run < 4 ** 3; run++) edges[1].recordSuccess("owner");
    expect(all.map((each) => each.has("owner"))).toEqual([false, false, false]);
  }
});

it("a fault in one process counts in all", () => {
  const { main, edges } = three();
  edges[0].recordFault("culprit");
  const all = [main, ...edges];
  expect(all.map((each) => each.hasFaulted("culprit"))).toEqual([true, true, true]);
  for (let run = 0; run < runsToTrust; run++) edges[1].recordSuccess("culprit");
  expect(all.map((each) => each.has("culprit"))).toEqual([true, true, true]);
});

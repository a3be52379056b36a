import { expect, it } from "vitest";
import { mebibyte } from "../../platform/bytes.ts";
import { fc } from "../../../test/helpers/properties.ts";
import { UnfinishedMessages, type MessageReceiver } from "./unfinished-messages.ts";

class Receiver implements MessageReceiver {
  readonly accountId: string;
  isRefused = false;
  constructor(accountId: string) {
    this.accountId = accountId;
  }
  refuseMessage(): void {
    this.isRefused = true;
  }
}

it("never counts more than 64 MiB, and refuses the largest message of the account with the most", () => {
  const steps = fc.array(fc.tuple(fc.nat(9), fc.nat(33 * mebibyte)), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (all) => {
      const messages = new UnfinishedMessages();
      const receivers = Array.from({ length: 10 }, (_, i) => new Receiver(String(i % 3)));
      const bytes = new Map<Receiver, number>();
      for (const [i, size] of all) {
        const receiver = receivers[i]!;
        if (receiver.isRefused) continue;
        bytes.set(receiver, size);
        messages.note(receiver, size);
        for (const refused of receivers.filter(({ isRefused }) => isRefused)) bytes.delete(refused);
        expect(messages.bytes).toBeLessThanOrEqual(64 * mebibyte);
        const open = [...bytes.values()].filter((each) => each > 16 * 1024);
        expect(messages.bytes).toBe(open.reduce((sum, each) => sum + each, 0));
      }
      for (const receiver of receivers) messages.note(receiver, 0);
      expect(messages.bytes).toBe(0);
    }),
  );
  const messages = new UnfinishedMessages();
  const [greedy, larger, newcomer] = [new Receiver("a"), new Receiver("a"), new Receiver("b")];
  messages.note(greedy, 15 * mebibyte);
  messages.note(larger, 20 * mebibyte);
  messages.note(newcomer, 30 * mebibyte);
  expect([greedy, larger, newcomer].map(({ isRefused }) => isRefused)).toEqual([false, true, false]);
});

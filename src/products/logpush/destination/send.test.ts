import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { startLogReceiver } from "../../../../test/helpers/log-receiver.ts";
import { AddressPolicy } from "../../../edge/origin/address-policy.ts";
import { LogSender } from "./send.ts";

it("verifies the certificate of a destination that is an IPv6 address", async () => {
  const receiver = await startLogReceiver("::1");
  onTestFinished(() => receiver.close());
  const sender = new LogSender({
    policy: new AddressPolicy("all"),
    lookUp: async () => [],
    timeoutMs: 10_000,
    ca: [readFileSync(receiver.caFile, "utf8")],
    localAddress: undefined,
  });
  const bytes = gzipSync("{}\n");
  const body = { sizeBytes: bytes.length, open: () => Readable.from([bytes]) };
  const outgoing = { method: "POST", url: new URL(receiver.url), headers: {}, body } as const;
  expect(await sender.send(outgoing)).toMatchObject({ status: 200 });
  expect(receiver.uploads.map(({ text }) => text)).toEqual(["{}\n"]);
});

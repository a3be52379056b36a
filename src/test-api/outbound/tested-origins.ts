import { AddressPolicy } from "../../edge/origin/address-policy.ts";
import { Origins } from "../../edge/origin/origins.ts";
import { placeholder, type OriginHooks } from "../../edge/origin/under-test.ts";
import type { EdgeSettings } from "../../edge/http/settings.ts";
import type { TestFaults } from "../faults/faults.ts";
import { applyResolverFault } from "../faults/resolver-faults.ts";
import { isThisMachine, type TestedOutbound } from "./outbound.ts";
import { refusal, TestedClient } from "./tested-client.ts";

/** The hooks with which the test kit replaces the internet. `close` closes their connections. */
export function testedOrigins(
  settings: EdgeSettings,
  outbound: TestedOutbound,
  faults: TestFaults,
): OriginHooks & { close(): void } {
  const servers = new Origins(settings, new AddressPolicy("all"));
  const parts = {
    outbound,
    faults: faults.origin,
    serverOfTest: ({ hostname, port }: URL) =>
      servers.client("test", hostname.replace(/^\[|\]$/g, ""), Number(port || 80)),
  };
  return {
    async lookUp(name) {
      const answered = faults.resolver.isEmpty ? undefined : await applyResolverFault(faults.resolver, name);
      if (answered !== undefined) return answered;
      return outbound.blocks(name) ? [placeholder] : undefined;
    },
    answers: (method, url) =>
      outbound.blocks(url.hostname) ||
      outbound.find(method, url) !== undefined ||
      faults.origin.list.some(({ fault: { host } }) => host !== undefined && host === url.hostname),
    client: (client, to) => new TestedClient(client, to, parts),
    connects(url, address) {
      const noted = outbound.note("socket", "CONNECT", url);
      if (isThisMachine(address) || !outbound.blocks(address)) return;
      noted.answeredBy = "refused";
      throw refusal(url);
    },
    close: () => servers.close(),
  };
}

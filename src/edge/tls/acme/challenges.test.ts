import type { ServerResponse } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import type { EdgeHttpRequest } from "../../request/handlers.ts";
import { openStorage } from "../../../platform/storage/storage.ts";
import { challengeHandler, challengePath, Challenges } from "./challenges.ts";

/**
 * Only the account whose zone serves a host can get certificates for it; authorities verify that at the host.
 */
it("challenges are answered at hosts whose zone belongs to the requesting account", async () => {
  const storage = await openStorage("sqlite::memory:");
  onTestFinished(() => storage.close());
  const challenges = new Challenges(storage);
  const token = "t".repeat(32);
  const zones = await storage.write(async (trx) => {
    await trx
      .insertInto("accounts")
      .values({ id: "a", name: "a", type: "standard", settings: "{}", has_billing: 1, created_on: 0 })
      .execute();
    const zone = { account_id: "a", type: "full", status: "active", paused: 0 as const, plan: "free" };
    const names = { name_servers: "[]", vanity_name_servers: "[]", smart_routing: "off" as const };
    const times = { serial: 0, record_count: 0, created_on: 0, modified_on: 0 };
    await trx
      .insertInto("zones")
      .values({ id: "z", name: "own.example", ...zone, ...names, ...times })
      .execute();
    return new Map([["z", "a"]]);
  });
  await challenges.publish({ token, zoneId: "z", kind: "http", name: "www.own.example", value: "shown" });
  const handler = challengeHandler(challenges, (id) => zones.get(id));
  const ask = async (host: string, accountId: string): Promise<string | undefined> => {
    let body: string | undefined;
    const response = {
      writeHead: () => {},
      end: (text: string) => (body = text),
    } as unknown as ServerResponse;
    const request = { resume: () => {} };
    const edgeRequest = {
      host,
      path: `${challengePath}${token}`,
      zone: { configuration: { accountId } },
      request,
      response,
    };
    const isTaken = await handler(edgeRequest as unknown as EdgeHttpRequest);
    expect(isTaken).toBe(body !== undefined);
    return body;
  };
  expect(await ask("www.own.example", "a")).toBe("shown");
  expect(await ask("www.own.example", "b")).toBeUndefined(); // another account's zone serves the host now
  expect(await ask("other.example", "a")).toBeUndefined();
});

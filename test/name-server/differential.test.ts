import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { compareWithNsd } from "./differential.ts";
import { isMissing } from "./nsd.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close(1000));

/** test/proofs/dns-differential.ts sends a hundred times as many queries. */
it.skipIf(isMissing("nsd"))("answers from zones equal those of NSD with the exported zones", async () => {
  const compared = await compareWithNsd(server, { zones: 4, records: 120, questionsPerZone: 500, seed: 1 });
  expect(compared.differences).toEqual([]);
  expect(compared.questions).toBe(2000);
  expect(Object.keys(compared.byRcode)).toEqual(["0", "3"]);
});

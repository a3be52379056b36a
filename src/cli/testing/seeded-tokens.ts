import { durationMsOf } from "../../testkit/clock.ts";
import type { ApiClient } from "../../testkit/api-client.ts";
import type { SeedToken } from "../../testkit/seed.ts";
import type { SeededContent } from "./seed.ts";

/** Creates the tokens of an account of a seed. Resolves with their values by name. */
export async function makeTokens(
  api: ApiClient,
  accountId: string,
  { tokens, fail }: SeededContent,
  nowMs: number,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const [name, token] of Object.entries(tokens))
    try {
      values[name] = await make(api, accountId, token, nowMs);
    } catch (error) {
      fail(["tokens", name], (error as Error).message);
    }
  return values;
}

async function make(
  api: ApiClient,
  accountId: string,
  { permissions, zone, expires }: SeedToken,
  nowMs: number,
): Promise<string> {
  const where = {
    ...(zone === undefined ? {} : { zone: await zoneIdOf(api, accountId, zone) }),
    ...(expires === undefined ? {} : { expires: new Date(nowMs + durationMsOf(expires)) }),
  };
  return api.tokenWith(permissions, accountId, where);
}

async function zoneIdOf(api: ApiClient, accountId: string, name: string): Promise<string> {
  const query = new URLSearchParams({ name, "account.id": accountId });
  const [zone] = await api.call<{ id: string }[]>("GET", `/zones?${query.toString()}`);
  if (zone === undefined) throw new Error(`Expected a zone of the seed's account but received ${name}`);
  return zone.id;
}

import { forgetAll } from "./cache.ts";
import { answerOf, whenSessionEnds, type ApiFailure } from "./client.ts";
import { store } from "./store.ts";

export interface SessionAccount {
  id: string;
  name: string;
  /** Permissions on the account, such as "workers_scripts:edit". */
  can: string[];
  /** Permissions on all of its zones. Empty for a token that is limited to single zones. */
  can_on_all_zones: string[];
}

/** The session: its token and user, its end, and its permissions. */
export interface Session {
  token: { id: string; name: string };
  user: { id: string; email: string } | null;
  created_on: string;
  expires_on: string;
  can: string[];
  accounts: SessionAccount[];
}

/** Undefined until the server has answered, null without a session. */
export const session = store<Session | null | undefined>(undefined);

whenSessionEnds(() => {
  if (session.get() == null) return;
  forgetAll();
  session.set(null);
});

const path = "/dashboard/session";
const headers = { "x-selvedge-dashboard": "1", "content-type": "application/json" };

/** The answer that the page has asked for before its code was loaded (first.ts). */
let first = (window as { firstSession?: Promise<Response> }).firstSession;

/** Asks the server who is signed in. */
export async function readSession(): Promise<Session | null> {
  const asked = first ?? fetch(path, { headers });
  first = undefined;
  return (await answerOf<Session | null>(await asked)).result;
}

/** Signs in with a token, or with the code of a start link. Rejects with ApiFailure. */
export async function signIn(given: { token: string } | { code: string }): Promise<void> {
  await post(given);
  let opened = await readSession();
  // A browser that does not keep secure cookies on loopback.
  if (opened === null && "token" in given) {
    await post({ ...given, plain: true });
    opened = await readSession();
  }
  forgetAll();
  session.set(opened);
}

async function post(body: object): Promise<void> {
  await answerOf(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export async function signOut(): Promise<void> {
  await fetch(path, { method: "DELETE", headers });
  forgetAll();
  session.set(null);
}

/** The permissions on one zone. */
export async function permissionsOnZone(zoneId: string): Promise<string[]> {
  return (await answerOf<{ can: string[] }>(await fetch(`${path}?zone=${zoneId}`, { headers }))).result.can;
}

export type { ApiFailure };

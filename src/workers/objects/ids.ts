import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import type { ObjectReference } from "../../sandbox/protocol.ts";

const baseBytes = 16;

/** Checked ids with their namespaces and names, cached because a check takes three digests. */
const known = new LRUCache<string, true>(entriesMax(10_000));

/** As `belongs`, with a cache, because scripts call the same objects again and again. */
export function isIdOf(namespace: string, reference: ObjectReference): boolean {
  const { id, name, jurisdiction } = reference;
  const key = JSON.stringify([namespace, id, name, jurisdiction]);
  if (known.get(key) === true) return true;
  const isOwn = belongs(namespace, reference);
  if (isOwn) known.set(key, true);
  return isOwn;
}

/**
 * Whether an id belongs to a namespace, and its name to the id. Ids are made in scripts' isolates as in workerd
 * (worker/ids.ts): HMAC-SHA-256 with SHA-256 of the namespace's id as key.
 */
function belongs(namespace: string, { id, name, jurisdiction }: ObjectReference): boolean {
  const key = createHash("sha256").update(namespace).digest();
  const hmac = (data: string | Buffer): Buffer =>
    createHmac("sha256", key).update(data).digest().subarray(0, baseBytes);
  const bytes = Buffer.from(id, "hex");
  const base = bytes.subarray(0, baseBytes);
  if (bytes.length !== 2 * baseBytes || !timingSafeEqual(bytes.subarray(baseBytes), hmac(base))) return false;
  if (name === undefined) return true;
  return timingSafeEqual(base, hmac(jurisdiction === undefined ? name : `${jurisdiction}\0${name}`));
}

/** The id of the object with a name. */
export function idFromName(namespace: string, name: string): string {
  const key = createHash("sha256").update(namespace).digest();
  const hmac = (data: string | Buffer): Buffer =>
    createHmac("sha256", key).update(data).digest().subarray(0, baseBytes);
  const base = hmac(name);
  return Buffer.concat([base, hmac(base)]).toString("hex");
}

/** A number in [0, 1) from an id, the same each time: an object stays with one of two deployed versions. */
export const diceOf = (id: string): number => Number.parseInt(id.slice(0, 12), 16) / 16 ** 12;

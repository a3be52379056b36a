import { randomUUID } from "node:crypto";

/** 16 hex characters from the random parts of a UUID: Node pre-generates these, unlike random bytes. */
export function newRay(colo: string): string {
  const uuid = randomUUID();
  return `${uuid.slice(0, 8)}${uuid.slice(28)}-${colo}`;
}

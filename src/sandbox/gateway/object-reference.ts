import type { ObjectReference } from "../protocol.ts";
import { headerText, MalformedError, readObject } from "./cell-messages.ts";

const nameBytesMax = 1024;
const jurisdictions: ReadonlySet<unknown> = new Set(["eu", "fedramp", "us"]);

export const isObjectName = (name: unknown): name is string =>
  typeof name === "string" && Buffer.byteLength(name) <= nameBytesMax;
export const isJurisdiction = (name: unknown): name is string => jurisdictions.has(name);

/** Parses the header in which a wrapper names a Durable Object. Throws a MalformedError. */
export function readReference(header: string | string[] | undefined): ObjectReference {
  const { id, name, jurisdiction } = readObject(headerText("the object", header), "the object");
  if (typeof id !== "string" || !/^[0-9a-f]{64}$/.test(id))
    throw new MalformedError("Expected 64 hexadecimal digits for the id of the object.");
  if (name !== undefined && !isObjectName(name))
    throw new MalformedError(`Expected at most ${nameBytesMax} bytes for the name of the object.`);
  if (jurisdiction !== undefined && !isJurisdiction(jurisdiction))
    throw new MalformedError("Expected a known jurisdiction for the object.");
  return {
    id,
    ...(name !== undefined && { name }),
    ...(jurisdiction !== undefined && { jurisdiction }),
  };
}

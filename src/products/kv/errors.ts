import { defineErrors } from "../../platform/domain-error.ts";
import { kvLimits } from "./limits.ts";

export const kvErrors = defineErrors("kv", {
  namespaceNotFound: (id: string) => `namespace not found: "${id}"`,
  titleExists: () => "create namespace: 'a namespace with this account ID and title already exists'",
  keyNotFound: () => "get: 'key not found'",
  key: (bytes: number) =>
    `Expected a key of 1 to ${kvLimits.keyBytesMax} bytes that is not "." or ".." but received one of ${bytes} bytes`,
  tooLarge: () => `Expected a value of at most ${kvLimits.valueBytesMax} bytes`,
  tooMuch: (bytesMax: number) => `The values together are too large. Expected at most ${bytesMax} bytes`,
  notJson: (key: string) => `The value of the key ${JSON.stringify(key)} is not JSON`,
  base64: (key: string) => `Expected base64 for the value of the key ${JSON.stringify(key)}`,
  metadata: (bytes: number) =>
    `Expected metadata of at most ${kvLimits.metadataBytesMax} bytes as JSON but received ${bytes}`,
  badMetadata: () => "Expected metadata as JSON",
  expiration: (what: string) => `Expected ${what}, at least ${kvLimits.ttlSecondsMin} seconds from now`,
  cursor: () => "Expected a cursor that a list of this namespace returned",
});

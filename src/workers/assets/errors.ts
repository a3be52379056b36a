import { defineErrors } from "../../platform/domain-error.ts";
import { assetLimits } from "./limits.ts";

export const assetErrors = defineErrors("assets", {
  badToken: (why: string) => `Invalid upload token: ${why}`,
  manifest: (message: string, pointer: string) => ({ message: message, pointer: `/body/manifest${pointer}` }),
  notRequested: (hash: string) => `No file of this upload session has the hash ${JSON.stringify(hash)}`,
  size: (hash: string, expected: number, received: number) =>
    `Expected ${expected} bytes for the asset ${hash}, as in the manifest, but received ${received}`,
  encoding: (base64: string | undefined) => ({
    message: `Expected base64=true in the query, as contents are sent in base64, but received ${JSON.stringify(base64 ?? null)}`,
    pointer: "/query/base64",
  }),
  base64: (hash: string) => `Expected base64 for the asset ${hash} but received something else`,
  tooLarge: (hash: string) =>
    `The asset ${hash} is too large. Expected at most ${assetLimits.fileBytes} bytes`,
  none: (script: string) => `The script ${script} has no static assets`,
  completion: (why: string) => `Invalid assets.jwt: ${why}`,
});

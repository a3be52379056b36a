import type { ErrorCodes } from "../../control/api/errors.ts";
import type { snippetErrors } from "./errors.ts";

export const snippetErrorCodes: ErrorCodes<typeof snippetErrors> = {
  "snippets.notFound": [404, 12001],
  "snippets.inUse": [400, 12002],
  "snippets.badName": [400, 12003],
  "snippets.notInPlan": [403, 12004],
  "snippets.tooMany": [400, 12005],
  "snippets.tooLarge": [400, 12006],
  "snippets.badFile": [400, 12007],
  "snippets.noMainModule": [400, 12008],
  "snippets.unknownSnippet": [400, 12009],
  "snippets.duplicate": [400, 12010],
};

import { z } from "zod";
import { bindingType, missingScript, scriptName, secretText } from "../binding-type.ts";

/** A text of the script's configuration. */
export const textType = bindingType({ fields: { text: secretText } });
/** A JSON value of the script's configuration. */
export const jsonType = bindingType({ fields: { json: z.json() } });
/** The id, the tag and the time of the version that runs. */
export const versionMetadataType = bindingType({ fields: {} });

/** A binding to another script of the account, or to the script itself. */
export const serviceType = bindingType({
  fields: {
    service: scriptName,
    environment: z.literal("production").optional(),
    entrypoint: z.string().max(255).optional(),
  },
  check: async ({ service }, context) => missingScript(service, context),
});

import { z } from "zod";
import { bindingType, scriptName } from "../binding-type.ts";

/**
 * A binding to a class of Durable Objects. The class may come into being with the upload, so the namespace is
 * found in the upload's transaction.
 */
export const objectNamespaceType = bindingType({
  fields: {
    class_name: z.string().min(1).max(255).optional(),
    script_name: scriptName.optional(),
    environment: z.literal("production").optional(),
    namespace_id: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .optional(),
  },
});

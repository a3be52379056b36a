import { z } from "zod";
import { bindingType, missingScript, scriptName } from "../../workers/binding-type.ts";

/** A binding to a workflow. */
export const workflowType = bindingType({
  fields: {
    workflow_name: z.string().min(1).max(64),
    class_name: z.string().min(1).max(255).optional(),
    script_name: scriptName.optional(),
  },
  // Clients create the workflow after the upload, so only its class can be checked here.
  async check({ class_name, script_name }, context) {
    if (script_name !== undefined && script_name !== context.scriptName)
      return missingScript(script_name, context);
    if (class_name === undefined || context.classNames?.has(class_name) !== false) return undefined;
    return `the class "${class_name}", which the script does not export`;
  },
});

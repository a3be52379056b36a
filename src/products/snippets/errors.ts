import { defineErrors } from "../../platform/domain-error.ts";

export const snippetErrors = defineErrors("snippets", {
  notFound: (name: string) => `requested snippet not found: the zone has no snippet "${name}"`,
  inUse: (name: string) => `snippet is still used: a rule runs "${name}". Remove that snippet rule first`,
  badName: (name: string) => ({
    message: `Expected 1 to 255 lower-case letters, digits and underscores for snippet_name but received "${name}"`,
    pointer: "/path/snippet_name",
  }),
  notInPlan: (plan: string) => `The plan "${plan}" does not include snippets`,
  tooMany: (max: number) => `Snippet quota exceeded: expected at most ${max} snippets in the zone`,
  tooLarge: (bytes: number, max: number) => ({
    message: `Expected at most ${max} bytes of code but received ${bytes}`,
    pointer: "/files",
  }),
  badFile: (name: string, what: string) => ({ message: `${name}: ${what}`, pointer: `/files/${name}` }),
  noMainModule: (name: string, files: readonly string[]) => ({
    message: `Expected the name of an uploaded file for metadata.main_module but received "${name}"; ${
      files.length === 0 ? "no file was uploaded" : `the files are ${files.join(", ")}`
    }`,
    pointer: "/metadata/main_module",
  }),
  unknownSnippet: (index: number, name: string) => ({
    message: `rules[${index}].snippet_name: expected a snippet of the zone but received "${name}"`,
    pointer: `/body/rules/${index}/snippet_name`,
  }),
  duplicate: (index: number, name: string, first: number) => ({
    message: `rules[${index}].snippet_name: expected each snippet in one rule only, but "${name}" is in rules[${first}] already`,
    pointer: `/body/rules/${index}/snippet_name`,
  }),
});

import { ApiError } from "../../control/api/errors.ts";

export interface SnippetModule {
  name: string;
  content: string;
}

export interface SnippetSummary {
  name: string;
  createdOn: number;
  modifiedOn: number;
}

export interface Snippet extends SnippetSummary {
  zoneId: string;
  /** Changes only with the code. */
  version: string;
  mainModule: string;
  modules: SnippetModule[];
}

/** A snippet as the edge runs it. */
export interface RunnableSnippet {
  /** Unique for each version of a snippet; its code never changes. */
  id: string;
  mainModule: string;
  modules: readonly SnippetModule[];
}

/** A rule of the phase `http_request_snippets`, in the form of the snippet operations. */
export interface SnippetRuleInput {
  expression: string;
  description: string;
  enabled: boolean;
  snippetName: string;
}

export const snippetPhase = "http_request_snippets";
export const snippetNamePattern = /^[a-z0-9_]{1,255}$/;

export const snippetErrors = {
  notFound: (name: string) =>
    new ApiError(404, 12001, `requested snippet not found: the zone has no snippet "${name}"`),
  inUse: (name: string) =>
    new ApiError(400, 12002, `snippet is still used: a rule runs "${name}". Remove that snippet rule first`),
  badName: (name: string) =>
    new ApiError(
      400,
      12003,
      `Expected 1 to 255 lower-case letters, digits and underscores for snippet_name but received "${name}"`,
      { pointer: "/path/snippet_name" },
    ),
  notInPlan: (plan: string) => new ApiError(403, 12004, `The plan "${plan}" does not include snippets`),
  tooMany: (max: number) =>
    new ApiError(400, 12005, `Snippet quota exceeded: expected at most ${max} snippets in the zone`),
  tooLarge: (bytes: number, max: number) =>
    new ApiError(400, 12006, `Expected at most ${max} bytes of code but received ${bytes}`, {
      pointer: "/files",
    }),
  badFile: (name: string, what: string) =>
    new ApiError(400, 12007, `${name}: ${what}`, { pointer: `/files/${name}` }),
  noMainModule: (name: string, files: readonly string[]) =>
    new ApiError(
      400,
      12008,
      `Expected the name of an uploaded file for metadata.main_module but received "${name}"; ${
        files.length === 0 ? "no file was uploaded" : `the files are ${files.join(", ")}`
      }`,
      { pointer: "/metadata/main_module" },
    ),
  unknownSnippet: (index: number, name: string) =>
    new ApiError(
      400,
      12009,
      `rules[${index}].snippet_name: expected a snippet of the zone but received "${name}"`,
      { pointer: `/body/rules/${index}/snippet_name` },
    ),
  duplicate: (index: number, name: string, first: number) =>
    new ApiError(
      400,
      12010,
      `rules[${index}].snippet_name: expected each snippet in one rule only, but "${name}" is in rules[${first}] already`,
      { pointer: `/body/rules/${index}/snippet_name` },
    ),
};

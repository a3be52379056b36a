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

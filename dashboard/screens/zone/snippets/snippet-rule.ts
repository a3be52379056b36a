/** Chooses the requests that a snippet handles. A rule that is not saved yet has no id. */
export interface SnippetRule {
  id?: string;
  description: string;
  enabled: boolean;
  expression: string;
  snippet_name: string;
}

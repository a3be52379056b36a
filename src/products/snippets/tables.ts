import type { Immutable } from "../../platform/storage/columns.ts";

/** Snippets of zones with their code. */
export interface SnippetsTable {
  zone_id: Immutable<string>;
  name: Immutable<string>;
  version: string;
  main_module: string;
  modules: string;
  created_on: Immutable<number>;
  modified_on: number;
}

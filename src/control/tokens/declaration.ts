import { declare, table } from "../../declaration.ts";
import type { ApiTokensTable } from "./tables.ts";

/** API tokens. */
export const declaration = declare({
  tables: {
    api_tokens: table<ApiTokensTable>(),
  },
  changes: ["api_token"],
});

import { cryptoFunctions } from "./crypto.ts";
import type { FunctionDefinition } from "./definition.ts";
import { jsonFunctions } from "./json.ts";
import { networkFunctions } from "./network.ts";
import { replaceFunctions } from "./replace.ts";
import { textFunctions } from "./text.ts";
import { urlFunctions } from "./url.ts";

/** Every function of the language, by name. `any` and `all` are part of the grammar. */
export const functions: ReadonlyMap<string, FunctionDefinition> = new Map(
  [
    ...textFunctions,
    ...replaceFunctions,
    ...urlFunctions,
    ...jsonFunctions,
    ...cryptoFunctions,
    ...networkFunctions,
  ].map((definition) => [definition.name, definition]),
);

import { defineErrors } from "../../platform/domain-error.ts";

export const tailsOfScopeMax = 10;

export const tailErrors = defineErrors("tails", {
  notFound: (id: string) => `There is no tail with the id ${id}`,
  tooMany: () => `Expected at most ${tailsOfScopeMax} tails of a script, or of an account, at once`,
});

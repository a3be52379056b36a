import { expect, it } from "vitest";
import { CellError, type CellErrorKind } from "../../sandbox/errors.ts";
import { snippetFault, snippetFaults } from "./visitor-errors.ts";

const faultOf = (kind: CellErrorKind, message = "no", refusal?: { message: string }) => {
  const { status, code } = snippetFault(
    new CellError(kind, message),
    refusal === undefined ? undefined : { code: 1202, title: "", ...refusal },
    false,
  );
  return [status, code];
};

it.each<[CellErrorKind, number, number]>([
  ["cpu", 500, 1203],
  ["memory", 500, 1204],
  ["overloaded", 503, 1205],
  ["unavailable", 503, 1205],
  ["crashed", 500, 1206],
  ["exception", 500, 1206],
])("a run that ends with %s is answered with %i and error %i", (kind, status, code) => {
  expect(faultOf(kind)).toEqual([status, code]);
});

it("an exception counts as a refused fetch only when it is that uncaught error", () => {
  const { message } = snippetFaults.subrequests(5);
  expect(faultOf("exception", message, { message })).toEqual([500, 1202]);
  expect(faultOf("exception", "something else", { message })).toEqual([500, 1206]);
  expect(faultOf("cpu", "", { message })).toEqual([500, 1203]);
});

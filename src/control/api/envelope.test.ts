import { expect, it, vi } from "vitest";
import { PreparedJson, preparedSuccess, success } from "./envelope.ts";

it("a prepared result is sent in the envelope of any other, without being parsed", () => {
  const result = [{ text: 'a "quoted" é', list: [1, null] }];
  const prepared = new PreparedJson(Buffer.from(JSON.stringify(result)));
  const messages = [{ code: 1, message: "noted" }];
  const parse = vi.spyOn(JSON, "parse");
  const text = Buffer.from(preparedSuccess(prepared, messages)).toString();
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
  expect(text).toBe(JSON.stringify(success(result, messages)));
  expect(prepared.value).toEqual(result);
});

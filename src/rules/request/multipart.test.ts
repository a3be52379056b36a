import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { multipartParts, type BodyPart } from "./multipart.ts";

const crlf = (...lines: string[]): string => lines.join("\r\n");
const type = "multipart/form-data; boundary=b";
const none = {
  names: [],
  filenames: [],
  contentTypes: [],
  contentDispositions: [],
  contentTransferEncodings: [],
};

it("splits a body into parts, including repeated header parameters", () => {
  const body = crlf(
    "preamble",
    "--b",
    'Content-Disposition: form-data; name="a"; filename="C:\\x\\"y\\".txt"',
    "content-type:\ttext/plain; charset=utf-8 ",
    "Content-Transfer-Encoding: base64",
    "",
    "first",
    "--bb is no delimiter",
    "--b  ",
    "content-disposition: form-data; NAME=plain; filename*=UTF-8''x",
    "Content-Disposition: form-data;",
    ' name="; name=x"',
    "",
    "",
    "--b",
    "",
    "no headers",
    "--b",
    "X-Nothing: else",
    "--b--",
    "--b",
    "",
    "epilogue",
  );
  const dispositions = [
    'form-data; name="a"; filename="C:\\x\\"y\\".txt"',
    "form-data; NAME=plain; filename*=UTF-8''x",
    'form-data; name="; name=x"',
  ] as const;
  expect(multipartParts(type, body)).toEqual([
    {
      names: ["a"],
      filenames: ['C:\\x"y".txt'],
      contentTypes: ["text/plain; charset=utf-8"],
      contentDispositions: [dispositions[0]],
      contentTransferEncodings: ["base64"],
      value: "first\r\n--bb is no delimiter",
    },
    {
      ...none,
      names: ["plain", "; name=x"],
      contentDispositions: [dispositions[1], dispositions[2]],
      value: "",
    },
    { ...none, value: "no headers" },
    { ...none, value: "" },
  ]);
});

it.each([
  ["text/plain; boundary=b", "--b\r\n\r\nx\r\n--b--"],
  ["multipart/form-data", "--b\r\n\r\nx\r\n--b--"],
  ['multipart/form-data; boundary=""', "--\r\n\r\nx\r\n----"],
  [type, ""],
  [type, "--b--"],
  [type, "--c\r\n\r\nx\r\n--c--"],
])("finds no parts in %j and %j", (contentType, body) => {
  expect(multipartParts(contentType, body)).toEqual([]);
});

it.each(["__proto__", "constructor", ": x", ""])("is not confused by the header %j", (header) => {
  expect(multipartParts(type, `--b\r\n${header}: y\r\n\r\nx\r\n--b--`)).toEqual([{ ...none, value: "x" }]);
});

const text = fc.string({ unit: fc.constantFrom(..."ab-\r\n\t\0\xe9\xa0 ".split("")), maxLength: 30 });
const name = fc.string({ unit: fc.constantFrom(..."abc;=' .\xa0".split("")), maxLength: 8 });
const fields = fc.array(fc.tuple(name, text, fc.option(name)), { minLength: 1, maxLength: 5 });
const quoted = (given: string): string => `"${given}"`;
const encode = (parts: readonly [string, string, string | null][], eol: string): string =>
  parts
    .map(([key, value, file]) => {
      const filename = file === null ? "" : `; filename=${quoted(file)}`;
      return `--bound${eol}Content-Disposition: form-data; name=${quoted(key)}${filename}${eol}${eol}${value}${eol}`;
    })
    .join("") + `--bound--${eol}`;
const contentType = "Multipart/Form-Data; charset=x; Boundary=bound";

it("returns the encoded values, with either kind of line end", () => {
  fc.assert(
    fc.property(fields, fc.constantFrom("\r\n", "\n"), (parts, eol) => {
      const read = multipartParts(contentType, encode(parts, eol));
      expect(read.map(({ names, filenames }) => [names, filenames])).toEqual(
        parts.map(([key, , file]) => [[key], file === null ? [] : [file]]),
      );
      // With LF alone, a preceding CR could belong to the value or the line. It counts as part of the line
      // end.
      const values = parts.map(([, value]) => (eol === "\n" ? value.replace(/\r$/, "") : value));
      expect(read.map(({ value }) => value)).toEqual(values);
    }),
  );
});

it("agrees with the platform's own parser of forms", async () => {
  await fc.assert(
    fc.asyncProperty(
      // The platform writes backslashes in names as they are, which programs other than browsers read as
      // escapes.
      fc.array(
        fc.tuple(
          fc.string().map((key) => key.replaceAll("\\", "")),
          fc.string(),
          fc.boolean(),
        ),
        { maxLength: 5 },
      ),
      async (parts) => {
        const form = new FormData();
        for (const [key, value, isFile] of parts)
          form.append(key, isFile ? new File([value], "a file") : value);
        const { headers, body } = await encoded(form);
        const read = multipartParts(headers.get("content-type")!, body.toString("latin1"));
        const again = await new Response(body, { headers }).formData();
        const expected = await Promise.all(
          [...again].map(async ([, value]) => (typeof value === "string" ? value : value.text())),
        );
        expect(read.map(({ value }) => Buffer.from(value, "latin1").toString())).toEqual(expected);
        expect(read.map(({ filenames }) => filenames.length)).toEqual(parts.map(([, , isFile]) => +isFile));
      },
    ),
  );
});

async function encoded(form: FormData): Promise<{ headers: Headers; body: Buffer<ArrayBuffer> }> {
  const response = new Response(form);
  return { headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
}

it("only the last part of a truncated body differs", () => {
  fc.assert(
    fc.property(fields, fc.nat(), (parts, cut) => {
      const whole = encode(parts, "\r\n");
      const all = multipartParts(contentType, whole);
      const some = multipartParts(contentType, whole.slice(0, cut % (whole.length + 1)));
      expect(some.slice(0, -1)).toEqual(all.slice(0, Math.max(some.length - 1, 0)));
      const [last, original] = [some.at(-1), all[some.length - 1]] as [BodyPart?, BodyPart?];
      if (last === undefined) return;
      expect({ ...last, value: "" }).toEqual({ ...original, value: "" });
      // A partial delimiter cannot be distinguished from the value.
      expect(`${original!.value}\r\n--bound--`.startsWith(last.value)).toBe(true);
    }),
  );
});

it("takes linear time for any content", () => {
  const bytes = 1024 * 1024; // quadratic time would be minutes
  const filled = (pattern: string): string => pattern.repeat(bytes / pattern.length);
  for (const pattern of ["\n", "\r\n--b", "--b\r\n", "--b\r\n\r\n", '; name="', "; ", "\n ", "\\", " "])
    for (const start of ["", "--b\r\n", '--b\r\nContent-Disposition: form-data; name="'])
      expect(multipartParts(type, start + filled(pattern)).length).toBeLessThan(bytes);
});

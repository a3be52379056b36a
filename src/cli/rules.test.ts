import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandLine } from "../../test/helpers/command.ts";
import { registerRulesCommand } from "./rules.ts";

const line = commandLine(registerRulesCommand);
const run = async (...args: string[]): Promise<string> => line.run("rules", ...args);

describe("rules check", () => {
  it("accepts a valid expression", async () => {
    expect(await run("check", "ssl")).toBe("valid\n");
  });

  it("prints the error and a suggestion", async () => {
    expect(await run("check", 'http.hots eq "a"')).toBe(
      'Filter parsing error (1:1):\nhttp.hots eq "a"\n^^^^^^^^^ unknown identifier\nDid you mean http.host?\n',
    );
    expect(process.exitCode).toBe(1);
  });

  it("prints JSON", async () => {
    expect(JSON.parse(await run("check", "--json", "sssl"))).toMatchObject({
      valid: false,
      error: { line: 1, column: 1, length: 4, reason: "unknown identifier", suggestion: "ssl" },
    });
  });

  it("accepts response fields in their phase", async () => {
    expect(await run("check", "http.response.code eq 200", "--phase", "response")).toBe("valid\n");
    await expect(run("check", "ssl", "--phase", "x")).rejects.toThrow(
      'Expected request or response for phase but received "x"',
    );
  });
});

describe("rules trace", () => {
  it("prints every part with its value", async () => {
    const file = join(line.folder, "request.txt");
    writeFileSync(file, "GET /a HTTP/1.1\nHost: example.com\nAccept: text/HTML\n\n");
    const expression =
      'any(lower(http.request.headers["accept"][*])[*] contains "html") and not ip.src in {10.0.0.0/8}';
    expect(await run("trace", expression, "--request", file, "--ip", "10.1.2.3")).toMatchInlineSnapshot(`
      "any(lower(http.request.headers["accept"][*])[*] contains "html") and not ip.src in {10.0.0.0/8}  =  false
        any(lower(http.request.headers["accept"][*])[*] contains "html")  =  true
          lower(http.request.headers["accept"][*])[*] contains "html"  =  [true]
            lower(http.request.headers["accept"][*])[*]  =  ["text/html"]
              lower(http.request.headers["accept"][*])  =  ["text/html"]
                http.request.headers["accept"][*]  =  ["text/HTML"]
                  http.request.headers  =  {"host": ["example.com"], "accept": ["text/HTML"]}
        not ip.src in {10.0.0.0/8}  =  false
          ip.src in {10.0.0.0/8}  =  true
            ip.src  =  10.1.2.3

      not matched
      "
    `);
  });

  it("prints JSON", async () => {
    const file = join(line.folder, "request.json");
    writeFileSync(file, JSON.stringify({ url: "https://example.com/", ip: "192.0.2.1" }));
    expect(JSON.parse(await run("trace", 'http.host eq "example.com"', "--request", file, "--json"))).toEqual(
      {
        matched: true,
        root: {
          text: 'http.host eq "example.com"',
          kind: "comparison",
          type: "Bool",
          value: "true",
          children: [
            { text: "http.host", kind: "field", type: "Bytes", value: '"example.com"', children: [] },
          ],
        },
      },
    );
  });
});

import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { ConfigError } from "../platform/config/config.ts";
import { during } from "../platform/listen/during.ts";
import { explain } from "./failure.ts";

const explained = async (what: string, work: () => unknown): Promise<string> =>
  during(what, (async () => work())()).then(
    () => "",
    (error: unknown) => explain(error),
  );

it("prints the chain of causes without repetition, and a hint for the error's code", async () => {
  const error = Object.assign(new Error("bind EACCES 0.0.0.0:443"), { code: "EACCES" });
  const text = await explained("listen on 0.0.0.0:443 (edge, TLS)", () => {
    throw new Error("bind EACCES 0.0.0.0:443, in short", { cause: error });
  });
  const [chain, hint] = text.split("\n");
  expect(chain).toBe("could not listen on 0.0.0.0:443 (edge, TLS): bind EACCES 0.0.0.0:443, in short");
  expect(hint).toContain("CAP_NET_BIND_SERVICE");
});

it("knows SQLite's error for a read-only file", async () => {
  const text = await explained("open the database", () => {
    const database = new DatabaseSync(":memory:");
    database.exec("pragma query_only = on; create table a (b)");
  });
  expect(text).toContain("read-only");
});

it("shows one line for a wrong setting, and the stack of an unexpected error", async () => {
  expect(explain(new ConfigError("Expected a port"))).toBe("Expected a port\n");
  expect(explain(new TypeError("a bug"))).toContain("failure.test.ts");
  expect(await explained("read", () => readFileSync("/no/such/file"))).toBe(
    "could not read: ENOENT: no such file or directory, open '/no/such/file'\n",
  );
});

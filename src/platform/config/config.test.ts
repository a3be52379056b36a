import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ConfigError, describeConfig, loadConfig, parseAddress } from "./config.ts";

const file = (content: string): string => {
  const path = join(mkdtempSync(join(tmpdir(), "selvedge-config-")), "selvedge.toml");
  writeFileSync(path, content);
  return path;
};

it("prefers flags to the environment, the file and defaults, and reports each value's origin", () => {
  const path = file('api-rate-limit = 1\ncolo = "AAA"\ndefault-plan = "pro"\n');
  const environment = { SELVEDGE_API_RATE_LIMIT: "2", SELVEDGE_COLO: "BBB" };
  const { config, origins } = loadConfig({ apiRateLimit: "3" }, environment, path);
  expect([config.apiRateLimit, config.colo, config.defaultPlan, config.apiListen]).toEqual([
    3,
    "BBB",
    "pro",
    "127.0.0.1:8787",
  ]);
  expect([origins.apiRateLimit, origins.colo, origins.defaultPlan, origins.apiListen]).toEqual([
    "flag",
    "environment",
    "file",
    "default",
  ]);
});

it("masks secrets", () => {
  const shown = describeConfig(
    loadConfig({ apiToken: "very-secret" }, { SELVEDGE_DATABASE_URL: "postgres://u:p@h/d" }, undefined),
  );
  expect(JSON.stringify(shown)).not.toMatch(/very-secret|u:p/);
  expect(shown.find((row) => row.name === "api-token")).toMatchObject({ value: "********", origin: "flag" });
});

it.each([
  [
    "an unknown key in the file",
    {},
    {},
    'api-listn = "x"',
    /Unknown key "api-listn" .*Did you mean api-listen\?/,
  ],
  [
    "an unknown variable",
    {},
    { SELVEDGE_API_LISEN: "x" },
    "",
    /Unknown setting SELVEDGE_API_LISEN .*Did you mean SELVEDGE_API_LISTEN\?/,
  ],
  ["a file that does not parse", {}, {}, "a = ", /cannot be read/],
  [
    "a wrong number",
    { apiRateLimit: "many" },
    {},
    "",
    /Expected a whole number from 0 to 1000000000 for --api-rate-limit but received "many"/,
  ],
  [
    "a wrong choice",
    {},
    { SELVEDGE_DEFAULT_PLAN: "gold" },
    "",
    /one of free, pro, business, enterprise for SELVEDGE_DEFAULT_PLAN/,
  ],
  ["a wrong address", { edgeListen: "8080" }, {}, "", /ADDRESS:PORT/],
  ["a wrong flag", { ephemeral: "perhaps" }, {}, "", /true or false/],
])("rejects %s", (_what, flags, environment, content, message) => {
  const load = (): unknown => loadConfig(flags, environment, file(content));
  expect(load).toThrow(ConfigError);
  expect(load).toThrow(message);
});

it.each([
  ["SELVEDGE_SERVICE_HOST", "10.0.0.1"],
  ["SELVEDGE_SERVICE_PORT", "80"],
  ["SELVEDGE_SERVICE_PORT_HTTP", "80"],
  ["SELVEDGE_PORT", "tcp://10.0.0.1:80"],
  ["SELVEDGE_PORT_80_TCP", "tcp://10.0.0.1:80"],
  ["SELVEDGE_PORT_53_UDP_PROTO", "udp"],
  ["SELVEDGE_PORT_80_TCP_PORT", "80"],
  ["SELVEDGE_PORT_80_TCP_ADDR", "10.0.0.1"],
])("tolerates %s, which Kubernetes injects for a Service named selvedge", (variable, value) => {
  expect(() => loadConfig({}, { [variable]: value }, file(""))).not.toThrow();
});

it.each(["SELVEDGE_SERVICE_NAME", "SELVEDGE_PORTS", "SELVEDGE_PORT_80", "SELVEDGE_SERVICE"])(
  "still refuses %s",
  (variable) => {
    expect(() => loadConfig({}, { [variable]: "x" }, file(""))).toThrow(variable);
  },
);

it("parses addresses", () => {
  expect(parseAddress("[::1]:80")).toEqual({ host: "::1", port: 80 });
  expect(parseAddress("0.0.0.0:0")).toEqual({ host: "0.0.0.0", port: 0 });
  expect(parseAddress("::1:80")).toBeUndefined();
  expect(parseAddress("127.0.0.1:65536")).toBeUndefined();
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadConfig, type LoadedConfig } from "../../platform/config/config.ts";
import type { Setting } from "../../platform/config/setting.ts";
import { settings, type SettingName } from "../../platform/config/settings.ts";
import { reportOf } from "./report.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-report-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const mark = "MarkedSecret";
const hexMark = "feedfacecafebeef".repeat(2);
/** A marked value for each secret setting, in its form. */
const marked: Partial<Record<SettingName, string | string[]>> = {
  databaseUrl: `postgres://selvedge:${mark}0%2Fx@127.0.0.1:1/selvedge`,
  blobSecretAccessKey: `${mark}1`,
  backupSecretAccessKey: `${mark}2`,
  apiToken: `${mark}3-0123456789`,
  apiKey: `${mark}4-0123456789`,
  dnsCookieSecret: hexMark,
  relaySecret: `${mark}5-0123456789-0123456789-0123456789`,
  acmeEabKey: `${mark}6`,
  otlpHeaders: [`authorization=Bearer%20${mark}7`],
};
const free = { apiListen: "127.0.0.1:0", edgeListen: "127.0.0.1:0", dnsListen: "127.0.0.1:0" };
const load = (more: Record<string, unknown>): LoadedConfig =>
  loadConfig({ ...free, dataDir: join(folder, "data"), ...more }, {}, undefined);

it("has no value of a secret setting, also not in lines of the log and in errors", async () => {
  const secret = (Object.keys(settings) as SettingName[]).filter(
    (name) => (settings[name] as Setting).secret === true,
  );
  expect(Object.keys(marked).toSorted()).toEqual(secret.toSorted());
  const lines = [
    ...Object.values(marked)
      .flat()
      .map((value) => JSON.stringify({ level: "error", msg: `failed with ${value}` })),
    JSON.stringify({
      level: "warn",
      msg: `authorization: Bearer ${mark}8, to https://user:${mark}9@a.example/`,
    }),
    JSON.stringify({ level: "info", msg: "no error" }),
  ];
  const log = join(folder, "selvedge.log");
  writeFileSync(log, `${lines.join("\n")}\n`);
  const text = await reportOf(load({ ...marked, acmeEabKid: "kid" }), log);
  expect(text).not.toContain(mark);
  expect(text).not.toContain(hexMark);
  const report = JSON.parse(text) as { log: string[]; nodes: object; settings: { name: string }[] };
  expect(report.log).toHaveLength(lines.length - 1);
  expect(report.settings.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["database-url", "data-dir"]),
  );
  expect(report.nodes).toHaveProperty("error");
});

it("hides a secret with a lone percent sign", async () => {
  const report = await reportOf(
    load({ databaseUrl: `postgres://selvedge:100%${mark}@127.0.0.1:1/selvedge` }),
    undefined,
  );
  expect(report).toContain("********");
  expect(report).not.toContain(mark);
});

it("has versions, checks and sizes", async () => {
  const data = join(folder, "data");
  const report = JSON.parse(await reportOf(load({}), undefined)) as Record<string, unknown>;
  expect(report["version"]).toMatch(/^\d/);
  expect(JSON.stringify(report["checks"])).toContain("workerd");
  expect(report["metrics"]).toEqual([expect.stringContaining("not measured")]);
  writeFileSync(join(data, "note.txt"), "123");
  const again = JSON.parse(await reportOf(load({}), undefined)) as Record<string, unknown>;
  expect(again["sizes"]).toMatchObject({ "note.txt": { files: 1, bytes: 3 } });
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { loadConfig } from "../../platform/config/config.ts";
import { diagnose, type Finding } from "./diagnosis.ts";
import { registerDoctorCommand } from "./doctor.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-doctor-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
  process.exitCode = undefined;
});

const free = { apiListen: "127.0.0.1:0", edgeListen: "127.0.0.1:0", dnsListen: "127.0.0.1:0" };
async function look(settings: Record<string, unknown>): Promise<(name: string) => Finding | undefined> {
  const { config } = loadConfig({ ...free, dataDir: folder, ...settings }, {}, undefined);
  const findings = await diagnose(config);
  return (name) => findings.find((finding) => finding.name === name);
}

describe("doctor", () => {
  it("reports no faults on a healthy system, and starts a real cell", async () => {
    const finding = await look({});
    for (const name of [
      "Node.js",
      "workerd",
      "a cell starts",
      "API",
      "DNS over UDP",
      "data folder",
      "database",
    ])
      expect(finding(name), name).toMatchObject({ state: "ok" });
    expect(finding("a cell starts")!.detail).toMatch(/^in \d+ ms, as process \d+$/);
    expect(finding("no direct network access")).toMatchObject({ area: "protections", state: "ok" });
    expect(finding("bubblewrap")!.detail).not.toBe("");
  });

  it("says when the last backup was made, and when it is late", async () => {
    const backups = join(folder, "backups");
    const settings = { backupEvery: "6h", backupFolder: backups };
    const states: [number | undefined, string, string][] = [
      [undefined, "advice", "there is none at"],
      [13, "advice", "more than two intervals of 6h ago"],
      [11, "ok", "began 20"],
    ];
    for (const [hours, state, detail] of states) {
      if (hours !== undefined) {
        const name = new Date(Date.now() - hours * 3_600_000).toISOString().replaceAll(":", "-");
        mkdirSync(join(backups, name), { recursive: true });
      }
      expect((await look(settings))("backups")).toMatchObject({
        state,
        detail: expect.stringContaining(detail),
      });
    }
    expect((await look({}))("backups")).toMatchObject({ state: "advice" });
    const bucket = { backupEvery: "6h", backupFolder: "s3://bucket/backups", backupUnencrypted: true };
    expect((await look(bucket))("backups")).toMatchObject({ state: "fault" });
  });

  it("names occupied ports, unreachable databases and unreadable files", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as AddressInfo;
    const city = join(folder, "city.mmdb");
    writeFileSync(city, "no database");
    const finding = await look({
      apiListen: `127.0.0.1:${port}`,
      databaseUrl: "postgres://nobody@127.0.0.1:1/none",
      geoCity: city,
      originCa: [join(folder, "none.pem")],
    });
    taken.close();
    expect(finding("API")).toMatchObject({ state: "advice", detail: expect.stringContaining("is in use") });
    expect(finding("database")).toMatchObject({
      state: "fault",
      detail: expect.stringMatching(/ECONNREFUSED/),
    });
    expect(finding("locations of addresses")).toMatchObject({
      state: "fault",
      detail: expect.stringContaining(city),
    });
    expect(finding(join(folder, "none.pem"))).toMatchObject({ state: "fault" });
  });

  it("prints a table or JSON, and fails if there is a fault", async () => {
    let out = "";
    vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      out += String(text);
      return true;
    });
    const run = async (...args: string[]): Promise<string> => {
      out = "";
      const program = new Command("selvedge").exitOverride();
      registerDoctorCommand(program);
      const listen = [
        "--api-listen",
        "127.0.0.1:0",
        "--edge-listen",
        "127.0.0.1:0",
        "--dns-listen",
        "127.0.0.1:0",
      ];
      await program.parseAsync(["node", "selvedge", "doctor", ...listen, "--data-dir", folder, ...args]);
      return out;
    };
    expect(await run()).toMatch(/^versions\n {2}ok {6}Node\.js/);
    expect(process.exitCode).toBeUndefined();
    const findings = JSON.parse(await run("--json", "--geo-asn", join(folder, "none.mmdb"))) as Finding[];
    expect(findings.filter(({ state }) => state === "fault").map(({ name }) => name)).toEqual([
      "locations of addresses",
    ]);
    expect(process.exitCode).toBe(1);
  });
});

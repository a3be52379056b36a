import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { settings } from "../../src/platform/config/settings.ts";
import { temporaryFolder } from "../helpers/process.ts";

const unit = "packaging/selvedge.service";

const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;

it.skipIf(!hasSystemd)("systemd accepts the units without a warning", () => {
  const copy = join(temporaryFolder(), "selvedge.service");
  copyFileSync(unit, copy);
  const socket = join(dirname(copy), "selvedge-edge.socket");
  copyFileSync("packaging/selvedge-edge.socket", socket);
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", copy, socket], {
    encoding: "utf8",
  });
  expect([status, stderr.split("\n").filter((line) => line.includes("selvedge"))]).toEqual([0, []]);
});

it("the unit names settings that exist", () => {
  const [, command = ""] = /^ExecStart=(.*)$/m.exec(readFileSync(unit, "utf8")) ?? [];
  const flags = [...command.matchAll(/--([\w-]+)/g)].map(([, flag]) => flag);
  const known = ["config", ...Object.values(settings).map(({ flag }) => flag)];
  expect(flags.length).toBeGreaterThan(0);
  expect(flags.filter((flag) => !known.includes(flag!))).toEqual([]);
});

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listedMetrics } from "../../scripts/generate/monitoring/metric-list.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The list of docs/metrics.md, the alerts and the board, compared with a running node. */
const folder = temporaryFolder();
let server: TestServer;
let scraped: string;
/** Metrics that exist with settings that this node does not have. */
const conditional = /^selvedge_(backup|spans)_/;

beforeAll(async () => {
  server = await startTestServer({ metricsListen: "127.0.0.1:0", edgeTlsListen: "127.0.0.1:0" });
  const { id } = (await server.call("POST", "/zones", { name: "listed.example" })).body.result;
  await server.call("POST", `/zones/${id}/dns_records`, { type: "A", name: "www", content: "127.0.0.1" });
  await fetch(server.ready.edge);
  scraped = await (await fetch(server.ready.metrics!)).text();
});
afterAll(() => server.close(0));

const names = (): Set<string> => new Set([...scraped.matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name!));

it("docs/metrics.md lists the metrics of a node, with their types", () => {
  const types = new Map(
    [...scraped.matchAll(/^# TYPE (\S+) (\S+)/gm)].map(([, name, type]) => [name!, type!]),
  );
  const ours = new Map([...types].filter(([name]) => name.startsWith("selvedge_")));
  const listed = listedMetrics().filter(({ name }) => !conditional.test(name));
  const expected = listed.map(({ name, type }): [string, string] => [
    name,
    type === "timestamp" ? "gauge" : type,
  ]);
  expect(new Map(expected)).toEqual(ours);
});

it("docs/metrics.md lists the labels of each metric", () => {
  const labelsOf = new Map(listedMetrics().map(({ name, labels }) => [name, labels]));
  for (const [, series = "", labels = ""] of scraped.matchAll(/^(selvedge_\w+)\{(.*?)\} /gm)) {
    const name = labelsOf.has(series) ? series : series.replace(/_(bucket|sum|count)$/, "");
    const used = [...labels.matchAll(/(\w+)="/g)]
      .map(([, label]) => label!)
      .filter((label) => label !== "le");
    expect(labelsOf.get(name), series).toEqual(expect.arrayContaining(used));
  }
});

const alerts = readFileSync("packaging/prometheus/alerts.yaml", "utf8");
const alertExpressions = [...alerts.matchAll(/^ {8}expr: (.*)$/gm)].map(
  ([, text]) => JSON.parse(text!) as string,
);
interface Panel {
  title: string;
  panels?: Panel[];
  targets?: { expr: string }[];
}
const { panels } = JSON.parse(readFileSync("packaging/grafana/selvedge.json", "utf8")) as { panels: Panel[] };
const expressionsOf = (panel: Panel): string[] => [
  ...(panel.targets ?? []).map(({ expr }) => expr),
  ...(panel.panels ?? []).flatMap(expressionsOf),
];
const boardExpressions = panels.flatMap(expressionsOf);

it("alerts and the board use metrics that exist", () => {
  const known = new Set([...names(), ...listedMetrics().map(({ name }) => name)]);
  for (const expression of [...alertExpressions, ...boardExpressions])
    for (const [name] of expression.matchAll(/\b(selvedge|process|nodejs)_\w+/g))
      expect(known.has(name.replace(/_bucket$/, "")), `${name} in ${expression}`).toBe(true);
});

it("the board shows each metric of the list, and docs/metrics.md names each alert", () => {
  for (const { name } of listedMetrics())
    expect(
      boardExpressions.some((each) => each.includes(name)),
      name,
    ).toBe(true);
  const docs = readFileSync("docs/metrics.md", "utf8");
  for (const [, name] of alerts.matchAll(/- alert: (\w+)/g)) expect(docs).toContain(`\`${name}\``);
});

const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;
const promtool = (args: readonly string[], input = ""): string =>
  execFileSync("promtool", args, { input, encoding: "utf8", stdio: ["pipe", "pipe", "pipe"] });

describe.skipIf(!hasPromtool)("promtool", () => {
  it("finds no fault in the names and types of the metrics", () => {
    expect(promtool(["check", "metrics"], scraped)).toBe("");
  });

  it("reads the alerts, and each fires when it should", () => {
    expect(promtool(["check", "rules", "packaging/prometheus/alerts.yaml"])).toContain("SUCCESS");
    expect(promtool(["test", "rules", "test/observability/alerts.yaml"])).toContain("SUCCESS");
  });

  it("reads each expression of the board", () => {
    const rules = boardExpressions.map((expression, index) => {
      const concrete = expression.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*");
      return `      - record: panel:${index}\n        expr: ${JSON.stringify(concrete)}`;
    });
    const file = join(folder, "board.yaml");
    writeFileSync(file, `groups:\n  - name: board\n    rules:\n${rules.join("\n")}\n`);
    expect(promtool(["check", "rules", file])).toContain(`${rules.length} rules found`);
  });
});

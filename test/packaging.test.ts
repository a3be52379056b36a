import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { loadConfig, parseAddress } from "../src/platform/config/config.ts";
import { settings, type SettingName } from "../src/platform/config/settings.ts";

/** test/proofs/container.ts builds the image and starts it. */
const read = (name: string): string => readFileSync(`packaging/${name}`, "utf8");
const dockerfile = read("Dockerfile");
/** The environment that the image sets. */
const environment = Object.fromEntries(
  [...dockerfile.matchAll(/\b(SELVEDGE_[A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
);

it("the image's environment is valid, and it exposes the ports of its listeners", () => {
  const { config } = loadConfig({}, environment, undefined);
  const listeners = (Object.keys(settings) as SettingName[]).filter((name) => name.endsWith("Listen"));
  const ports = listeners.flatMap((name) => {
    const address = config[name] as string | undefined;
    if (address === undefined) return [];
    const { host, port } = parseAddress(address)!;
    expect(host).toBe("0.0.0.0");
    return name === "dnsListen" ? [`${port}/tcp`, `${port}/udp`] : [`${port}/tcp`];
  });
  const exposed = /^EXPOSE (.+)$/m.exec(dockerfile)![1]!.split(" ");
  expect(exposed.toSorted()).toEqual(ports.toSorted());
});

it.each(["compose.yaml", "kubernetes.yaml"])(
  "%s names settings that exist and ports of the image",
  (name) => {
    const text = read(name);
    const used = [...text.matchAll(/(?:name:|^ +)\s*(SELVEDGE_[A-Z_]+)/gm)].map(([, variable]) => variable!);
    expect(used.length).toBeGreaterThan(1);
    const values = {
      SELVEDGE_DATABASE_URL: "postgres://127.0.0.1/selvedge",
      SELVEDGE_BLOB_URL: /SELVEDGE_BLOB_URL: (.+)/.exec(text)?.[1],
      SELVEDGE_LAME_DUCK_SECONDS: "5",
    };
    for (const variable of used) {
      const value = (values as Record<string, string>)[variable] ?? "a-valid-value";
      expect(() => loadConfig({}, { [variable]: value }, undefined)).not.toThrow();
    }
    const ports = [...text.matchAll(/(?:targetPort: |containerPort: |"(?:[\d.]+:)?\d+:)(\d+)/g)].map(
      ([, port]) => port!,
    );
    expect(ports.length).toBeGreaterThan(3);
    for (const port of ports) expect(dockerfile).toMatch(new RegExp(`^EXPOSE .*\\b${port}/`, "m"));
  },
);

it("the image is built without the repository's history, dependencies and tests", () => {
  const ignored = readFileSync(".dockerignore", "utf8").split("\n");
  for (const folder of [".git", "node_modules", "data", "test"]) expect(ignored).toContain(folder);
});

import { execFile, execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import parser from "hcl2-parser";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { registerMigrationCommands } from "../../src/cli/migration/commands.ts";
import { exportTerraform } from "../../src/cli/migration/export/terraform.ts";
import { terraformProducts } from "../../src/cli/migration/export/terraform-resources.ts";
import { exportZoneFiles } from "../../src/cli/migration/export/zone-files.ts";
import type { Document } from "../../src/cli/migration/document.ts";
import { products } from "../../src/cli/migration/products.ts";
import { commandLine } from "../helpers/command.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { fc } from "../helpers/properties.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { fillAccount, madeOn, records, sendForm, zoneName } from "./account.ts";

/** The lines of dig about a name. The servers run in this process, so it must not wait for dig. */
async function dig(server: TestServer, name: string, type: string): Promise<string[]> {
  const [host, port] = server.ready.dns.split(":");
  const args = [`@${host}`, "-p", port!, name, type, "+norecurse", "+noall", "+answer", "+authority"];
  const { stdout } = await promisify(execFile)("dig", args);
  return stdout
    .split("\n")
    .filter((line) => /\sIN\s/.test(line))
    .sort();
}

type Blocks = Record<string, Record<string, Record<string, unknown>[]>>;
/** Parsed by HashiCorp's own parser. References read as "${…}". */
function parsed(text: string): Record<string, unknown> {
  const [found, error] = (
    parser as { parseToObject(text: string): [Record<string, unknown>, unknown] }
  ).parseToObject(text);
  expect(error).toBeNull();
  return found;
}
const folder = temporaryFolder();
const commands = commandLine(registerMigrationCommands);

describe("of a whole account", () => {
  let account: TestServer;
  let zone: string;
  beforeAll(async () => {
    account = await startTestServer();
    ({ zone } = await fillAccount(account));
    vi.stubEnv("SELVEDGE_BASE_URL", account.ready.api);
    vi.stubEnv("SELVEDGE_API_TOKEN", ownerToken);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await account.close(1000);
  });

  it("as Terraform: every resource, with an import block by its id", async () => {
    const out = await commands.run("export", "terraform", "selvedge", "--out", join(folder, "tf"));
    const files = readdirSync(join(folder, "tf")).filter((name) => name.endsWith(".tf"));
    const text = (name: string): string => readFileSync(join(folder, "tf", name), "utf8");
    for (const name of files) parsed(text(name));
    const { resource } = parsed(text("dns_record.tf")) as { resource: Blocks };
    const made = Object.values(resource["cloudflare_dns_record"]!).map(([fields]) => fields!);
    expect(made.length).toBe(records.length);
    expect(made.map(({ comment }) => comment)).toContain('a "quoted" ${comment}; with \\ all');
    expect(made.map(({ zone_id }) => zone_id)).toContain("${cloudflare_zone.shop_example.id}");
    const imports = (parsed(text("imports.tf")) as { import: { to: string; id: string }[] }).import;
    const [www] = await madeOn(account)("GET", `/zones/${zone}/dns_records?name=www.${zoneName}`);
    expect(imports.map(({ id }) => id)).toEqual(expect.arrayContaining([`${zone}/${www.id}`, zone]));
    expect(new Set(imports.map(({ to }) => to)).size).toBe(imports.length);
    expect(text("ruleset.tf")).not.toMatch(/[$%]\{/);
    expect(out).toContain("left out: image shoes/red: the provider uploads no files");
    expect(out).toContain("left out: script front: the provider uploads one module");
  });

  it("Terraform itself reads the configuration", async ({ skip }) => {
    if (spawnSync("terraform", ["version"]).error !== undefined) skip("Terraform is not installed");
    // Without the provider, which is not here, only the syntax is checked.
    const path = join(folder, "tf");
    execFileSync("terraform", ["fmt", "-recursive", path]);
    expect(execFileSync("terraform", ["fmt", "-check", "-recursive", path]).toString()).toBe("");
  });

  it("as a zone file: imported elsewhere, dig gets the same answers", async () => {
    await commands.run("export", "zones", "selvedge", "--out", join(folder, "zones"));
    const other = await startTestServer();
    try {
      const copy = await other.newZone(zoneName);
      await madeOn(other)("PUT", `/zones/${copy}/activation_check`);
      const form = new FormData();
      form.set("file", new File([readFileSync(join(folder, "zones", `${zoneName}.zone`))], "zone"));
      await sendForm(other, "POST", `/zones/${copy}/dns_records/import`, form);
      for (const { type, name } of records) {
        const asked = name === "@" ? zoneName : `${name}.${zoneName}`.replace("*", "any");
        const [copied, original] = await Promise.all([dig(other, asked, type), dig(account, asked, type)]);
        // Proxied names lead to the edge of their own account.
        if (name === "www") expect(copied.length).toBe(original.length);
        else expect(copied, asked).toEqual(original);
        expect(original.length, asked).toBeGreaterThan(0);
      }
    } finally {
      await other.close(1000);
    }
  });
});

it("knows every product", () => {
  expect(Object.keys(terraformProducts).toSorted()).toEqual(products.map(({ name }) => name).toSorted());
});

/** Text as an attacker would write it. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "${",
        "%{",
        "$",
        "%",
        "{",
        "}",
        '"',
        "\\",
        "\n",
        "\r",
        "\u2028",
        "\0",
        "<<EOT",
        "../",
        "/*",
        "#",
        ";",
      ),
      fc.string({ unit: "binary", maxLength: 3 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join("").normalize("NFC").toWellFormed());

const documentOf = (resources: Document["resources"], zoneNames: string[] = []): Document => ({
  selvedge_import: 1,
  source: { base_url: "http://127.0.0.1", account_id: "a".repeat(32) },
  zones: zoneNames.map((name) => ({ id: "b".repeat(32), name })),
  include: [],
  resources,
  left_out: [],
});

it("every text of an account comes back from HCL as it was, and is never code", () => {
  fc.assert(
    fc.property(hostile, hostile, hostile, (title, key, value) => {
      const { files } = exportTerraform(
        documentOf([
          { product: "kv_namespace", key: title, id: "c", value: { title } },
          {
            product: "kv_value",
            key: "x",
            value: {
              namespace: title,
              key,
              value: { text: value },
              metadata: { [key]: value },
              expiration: null,
            },
          },
        ]),
      );
      const text = String(files.get("kv_value.tf"));
      expect(text.replaceAll("${path.module}", "")).not.toMatch(/[$%]\{/);
      const { resource } = parsed(text) as { resource: Blocks };
      const [[fields]] = Object.values(resource["cloudflare_workers_kv"]!) as [[Record<string, unknown>]];
      expect(fields["key_name"]).toBe(key);
      expect(fields["value"]).toBe(value);
      expect(JSON.parse(fields["metadata"] as string)).toEqual({ [key]: value });
      const namespaces = parsed(String(files.get("kv_namespace.tf"))) as { resource: Blocks };
      const [[namespace]] = Object.values(namespaces.resource["cloudflare_workers_kv_namespace"]!) as [
        [Record<string, unknown>],
      ];
      expect(namespace["title"]).toBe(title);
    }),
    { numRuns: 300 },
  );
});

it("no name of an account leads out of the folder", () => {
  fc.assert(
    fc.property(hostile, hostile, (zone, name) => {
      const module = { name, content_type: "text/plain", content: { text: "x" } };
      const value = { name, main_module: name, modules: [module] };
      const document = documentOf(
        [
          { product: "zone", zone, key: zone, value: { name: zone, type: "full", paused: false } },
          { product: "snippet", zone, key: name, value },
        ],
        [zone],
      );
      const names = [...exportTerraform(document).files.keys(), ...exportZoneFiles(document, 0).keys()];
      for (const each of names) expect(each).toMatch(/^(?:files\/)?[a-z0-9_][a-z0-9_.-]*$/);
      for (const each of names) expect(each).not.toContain("..");
    }),
    { numRuns: 300 },
  );
});

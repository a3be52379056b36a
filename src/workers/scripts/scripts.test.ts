import { describe, expect, it, onTestFinished } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import { ensurePepper } from "../../control/accounts/pepper.ts";
import { ensureOwner } from "../../control/members/owner.ts";
import { loadConfig } from "../../platform/config/config.ts";
import { DispatchNamespaces, ownerOf } from "./namespaces/namespaces.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { Tokens } from "../../control/tokens/tokens.ts";
import { staticActivation } from "../../control/zones/activation.ts";
import { Zones } from "../../control/zones/zones.ts";
import { Deployments } from "./versions/deployments.ts";
import { DnsRecords } from "../../dns/records/records.ts";
import { DomainRecords } from "./routing/domain-records.ts";
import { Domains } from "./routing/domains.ts";
import { References } from "./references.ts";
import { ScriptRouter } from "./routing/router.ts";
import { Routes } from "./routing/routes.ts";
import type { Author, ScriptOwner } from "./script.ts";
import { Scripts } from "./scripts.ts";
import { Sealer } from "./versions/sealing.ts";
import { Subdomains } from "./routing/subdomains.ts";
import { kvNamespaceType } from "../../products/kv/binding-type.ts";
import { BindingRegistry } from "../binding-registry.ts";
import { dispatchNamespaceType } from "../dispatch/binding-type.ts";
import { serviceType, textType } from "./binding-types.ts";
import type { VersionUpload } from "./versions/version-input.ts";
import { Versions } from "./versions/versions.ts";

const noZones = { find: () => undefined };

const may = { takeOver: false, replaceRecords: false };
const author: Author = { id: "u", email: "who@selvedge.localhost", client: "api" };
const code = (text: string): VersionUpload["code"] => ({
  mainModule: "m.js",
  modules: [
    {
      name: "m.js",
      kind: "js",
      contentType: "application/javascript+module",
      content: `export default { fetch: () => new Response("${text}") };`,
    },
  ],
  sourceMaps: [],
});

async function platform(storage: Storage) {
  onTestFinished(() => storage.close());
  const accounts = new Accounts(storage);
  const pepper = await ensurePepper(storage);
  const tokens = new Tokens(storage, accounts, pepper, noZones);
  const { account } = await ensureOwner(
    loadConfig({ ephemeral: true }, {}, undefined).config,
    storage,
    accounts,
    tokens,
  );
  const zones = new Zones(storage, {
    nameServers: ["a", "b"],
    defaultPlan: "enterprise",
    activation: staticActivation,
  });
  const zone = await zones.create({ accountId: account.id, name: "scripts.example", type: "full" });
  const sealer = new Sealer(tokens.hash("secrets"));
  const open = () => {
    const scripts = new Scripts(storage, sealer);
    const namespaces = new DispatchNamespaces(storage, scripts);
    return { scripts, namespaces };
  };
  const { scripts, namespaces } = open();
  const routes = new Routes(storage, scripts, zones);
  const records = new DnsRecords(storage);
  const domains = new Domains(storage, scripts, zones, new DomainRecords(records));
  const subdomains = new Subdomains(storage, accounts);
  const registry = new BindingRegistry();
  registry.set({
    plain_text: { type: textType },
    secret_text: { type: textType },
    service: {
      type: serviceType,
      exists: async (accountId, name) => scripts.find({ accountId }, name) !== undefined,
    },
    dispatch_namespace: {
      type: dispatchNamespaceType,
      exists: async (accountId, name) => namespaces.find(accountId, name) !== undefined,
    },
    kv_namespace: { type: kvNamespaceType, exists: async () => true },
  });
  const manifests = { complete: async () => "manifest" };
  const versions = new Versions(
    storage,
    scripts,
    sealer,
    registry,
    manifests,
    async () => ({ fault: undefined, tookMs: 0 }),
    1_000_000,
  );
  await subdomains.start();
  const owner: ScriptOwner = { accountId: account.id };
  const put = async (name: string, upload: Partial<VersionUpload> = {}, to: ScriptOwner = owner) =>
    versions.upload(to, name, { code: code(name), ...upload }, author, { deploy: true });
  return {
    account,
    owner,
    zone,
    zones,
    scripts,
    namespaces,
    routes,
    domains,
    records,
    subdomains,
    versions,
    put,
    deployments: new Deployments(storage, scripts),
    references: new References(storage, scripts),
    router: new ScriptRouter(scripts, routes, domains, subdomains, "workers.localhost"),
    reopen: async () => {
      const again = open();
      await again.scripts.start();
      await again.namespaces.start();
      return again;
    },
  };
}

describeStorage("scripts", (open) => {
  it("equal the upload after a reload, with secrets encrypted in storage", async () => {
    const storage = await open();
    const { owner, put, reopen, versions } = await platform(storage);
    await put("a", {
      bindings: [
        { type: "secret_text", name: "S", text: "the secret" },
        { type: "plain_text", name: "P", text: "plain" },
      ],
      tags: ["t"],
      limits: { cpuMs: 5 },
    });
    const { scripts } = await reopen();
    const loaded = await scripts.loadOf(owner, "a");
    expect(loaded).toMatchObject({
      name: "a",
      bindings: [
        { type: "secret_text", name: "S", text: "the secret" },
        { type: "plain_text", name: "P", text: "plain" },
      ],
      limits: { cpuMs: 5 },
      handlers: ["fetch"],
      modules: code("a").modules,
    });
    const kept = await versions.current(scripts.get(owner, "a"));
    expect(JSON.stringify(kept)).not.toContain("the secret");
    expect(scripts.get(owner, "a").tags).toEqual(["t"]);
  });

  it("may have many first uploads at the same time", async () => {
    const { owner, put, scripts } = await platform(await open());
    await Promise.all(Array.from({ length: 5 }, async () => put("contested")));
    expect(scripts.get(owner, "contested").versionCount).toBe(5);
  });

  it("keep versions, of which one or two are live", async () => {
    const { owner, put, versions, deployments, scripts } = await platform(await open());
    const first = await put("a");
    const second = await versions.upload(owner, "a", { code: code("second") }, author, { deploy: false });
    expect(scripts.live(owner, "a")?.versionId).toBe(first.version.id);
    await deployments.create(
      owner,
      "a",
      [
        { versionId: first.version.id, percentage: 30 },
        { versionId: second.version.id, percentage: 70 },
      ],
      author,
      {},
    );
    const chosen = (dice: number) => scripts.live(owner, "a", dice)?.versionId;
    expect([chosen(0), chosen(0.29), chosen(0.3), chosen(0.999)]).toEqual([
      first.version.id,
      first.version.id,
      second.version.id,
      second.version.id,
    ]);
    const listed = await versions.list(scripts.get(owner, "a"), { page: 1, per_page: 10 });
    expect([listed.totalCount, ...listed.versions.map(({ number }) => number)]).toEqual([2, 2, 1]);
    expect(await deployments.list(scripts.get(owner, "a"))).toHaveLength(2);
    await expect(versions.revise(owner, "a", author, () => ({ tags: [] }))).rejects.toThrow("not deployed");
  });

  it("take new code after a rollback, with the settings of the version that runs", async () => {
    const { owner, put, versions, deployments } = await platform(await open());
    const text = (value: string) => ({
      bindings: [{ type: "plain_text" as const, name: "P", text: value }],
    });
    const first = await put("a", text("first"));
    const second = await put("a", text("second"));
    const deploy = async (...shares: [versionId: string, percentage: number][]) =>
      deployments.create(
        owner,
        "a",
        shares.map(([versionId, percentage]) => ({ versionId, percentage })),
        author,
        {},
      );
    await deploy([first.version.id, 100]);
    const replace = async () => versions.revise(owner, "a", author, () => ({ code: code("third") }), "live");
    const { script, version } = await replace();
    expect([version.number, version.content.bindings]).toMatchObject([3, [{ name: "P", text: "first" }]]);
    expect(script.live).toEqual([{ versionId: version.id, percentage: 100 }]);
    await deploy([second.version.id, 50], [version.id, 50]);
    await expect(replace()).rejects.toThrow("not deployed");
  });

  it("inherit bindings, keep secrets, and lose no concurrent change", async () => {
    const { owner, put, versions } = await platform(await open());
    await put("a", { bindings: [{ type: "secret_text", name: "S", text: "s" }] });
    const kept = await put("a", {
      bindings: [{ type: "plain_text", name: "P", text: "p" }],
      keepBindings: ["secret_text"],
    });
    expect(kept.version.content.bindings.map(({ name }) => name)).toEqual(["P", "S"]);
    const renamed = await put("a", { bindings: [{ type: "inherit", name: "R", old_name: "S" }] });
    expect(renamed.version.content.bindings).toMatchObject([{ type: "secret_text", name: "R" }]);
    await expect(put("a", { bindings: [{ type: "inherit", name: "NONE" }] })).rejects.toThrow(
      'no binding "NONE"',
    );
    await Promise.all(
      Array.from({ length: 8 }, async (_, i) =>
        versions.revise(owner, "a", author, ({ content }) => ({
          bindings: [
            ...content.bindings.map(({ name }) => ({ type: "inherit" as const, name })),
            { type: "plain_text", name: `N${i}`, text: "" },
          ],
        })),
      ),
    );
    const { content } = await versions.current(
      (await versions.revise(owner, "a", author, () => ({}))).script,
    );
    expect(content.bindings).toHaveLength(9);
  });

  it("forget old versions, and the code that only they had", async () => {
    const storage = await open();
    const { account, namespaces, put, scripts } = await platform(storage);
    const owner = ownerOf(await namespaces.create(account.id, "n", "u"));
    for (let i = 0; i < 5; i++) await put("tenant", { code: code(`v${i}`) }, owner);
    const count = async (table: "script_versions" | "script_modules") =>
      (await storage.read.selectFrom(table).selectAll().execute()).length;
    expect([await count("script_versions"), await count("script_modules")]).toEqual([2, 2]);
    await scripts.delete(owner, ["tenant"]);
    expect([await count("script_versions"), await count("script_modules")]).toEqual([0, 0]);
  });

  it("of a dispatch namespace are deleted with it, and found under its new name", async () => {
    const { account, namespaces, put, scripts } = await platform(await open());
    const namespace = await namespaces.create(account.id, "n", "u");
    await put("tenant", {}, ownerOf(namespace));
    const renamed = await namespaces.edit(namespace, { name: "renamed", isTrusted: true }, "u");
    expect(namespaces.live(account.id, "n", "tenant")).toBeUndefined();
    expect(await namespaces.load(account.id, "renamed", "tenant")).toMatchObject({ namespace: "renamed" });
    await namespaces.delete(renamed);
    expect(scripts.list(ownerOf(renamed))).toEqual([]);
    expect(namespaces.list(account.id)).toEqual([]);
  });

  it("are found by the most specific route, a domain, or their own host", async () => {
    const { owner, zone, account, put, routes, domains, subdomains, router, scripts } = await platform(
      await open(),
    );
    for (const name of ["wild", "path", "own"]) await put(name);
    await routes.create(zone, "*.scripts.example/*", "wild");
    await routes.create(zone, "www.scripts.example/api/*", "path");
    await routes.create(zone, "www.scripts.example/api/none", null);
    const at = { id: zone.id, accountId: account.id };
    const find = (host: string, path: string, inZone = true) =>
      router.find({ scheme: "http", host, path, zone: inZone ? at : undefined })?.name;
    expect([
      find("www.scripts.example", "/"),
      find("www.scripts.example", "/api/x?y"),
      find("www.scripts.example", "/api/none"),
      find("scripts.example", "/"),
    ]).toEqual(["wild", "path", undefined, undefined]);
    await domains.put(zone, "own.scripts.example", "own", may);
    expect(find("own.scripts.example", "/", false)).toBe("own");
    await expect(domains.put(zone, "own.scripts.example", "wild", may)).rejects.toThrow(
      "belongs to the script",
    );
    const subdomain = (await subdomains.of(account))!;
    expect(find(`own.${subdomain}.workers.localhost`, "/", false)).toBe("own");
    await scripts.edit(owner, "own", () => ({ subdomainEnabled: false }));
    expect(find(`own.${subdomain}.workers.localhost`, "/", false)).toBeUndefined();
    await scripts.delete(owner, ["wild", "own", "path"]);
    expect(await routes.list(zone.id)).toMatchObject([{ script: null }]);
    expect(domains.list(account.id)).toEqual([]);
  });

  it("have domains that lead to the edge, and replace other records only if the caller says so", async () => {
    const { zone, put, domains, records } = await platform(await open());
    await put("a");
    const contents = async () =>
      (await records.export(zone)).records.map(({ name, content }) => [name, content]);
    const domain = await domains.put(zone, "a.scripts.example", "a", may);
    expect(await contents()).toEqual([["a.scripts.example", "100::"]]);
    await domains.delete([domain]);
    expect(await contents()).toEqual([]);
    await records.create(zone, { type: "A", name: "b", content: "192.0.2.1", ttl: 1 });
    await expect(domains.put(zone, "b.scripts.example", "a", may)).rejects.toThrow("A 192.0.2.1");
    await domains.put(zone, "b.scripts.example", "a", { ...may, replaceRecords: true });
    await records.create(zone, { type: "A", name: "c", content: "192.0.2.1", ttl: 1, proxied: true });
    await domains.delete([await domains.put(zone, "c.scripts.example", "a", may)]);
    expect(await contents()).toEqual([
      ["b.scripts.example", "100::"],
      ["c.scripts.example", "192.0.2.1"],
    ]);
  });

  it("list the scripts that use them", async () => {
    const { account, namespaces, put, references } = await platform(await open());
    await namespaces.create(account.id, "n", "u");
    const { script } = await put("used_1");
    await put("usedX1");
    await put("user", { bindings: [{ type: "service", name: "B", service: "used_1" }] });
    await put("other", { bindings: [{ type: "service", name: "B", service: "usedX1" }] });
    await put("dispatcher", {
      bindings: [
        {
          type: "dispatch_namespace",
          name: "D",
          namespace: "n",
          outbound: { worker: { service: "used_1" } },
        },
      ],
    });
    const found = await references.to(script);
    expect(found.map(({ name, kind }) => `${name}: ${kind}`).toSorted()).toEqual([
      "dispatcher: dispatch_outbound",
      "user: service",
    ]);
  });
});

describe("a sealed secret", () => {
  it("opens only where it belongs", () => {
    const sealer = new Sealer("pepper");
    const sealed = sealer.seal("secret é", "script-1");
    expect(sealer.open(sealed, "script-1")).toBe("secret é");
    expect(sealer.seal("secret é", "script-1")).not.toBe(sealed);
    expect(() => sealer.open(sealed, "script-2")).toThrow();
    expect(() => new Sealer("other").open(sealed, "script-1")).toThrow();
  });
});

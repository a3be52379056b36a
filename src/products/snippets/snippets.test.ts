import { expect, it, onTestFinished } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import type { RequestDescription } from "../../rules/language.ts";
import { Rulesets } from "../../control/rulesets/rulesets.ts";
import { ensureOwner } from "../../control/members/owner.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import { loadConfig } from "../../platform/config/config.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { ensurePepper } from "../../control/accounts/pepper.ts";
import { Tokens } from "../../control/tokens/tokens.ts";
import { staticActivation } from "../../control/zones/activation.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { Zones } from "../../control/zones/zones.ts";
import { Snippets } from "./snippets.ts";

const noZones = { find: () => undefined };

const describeRequest =
  (path: string): (() => RequestDescription) =>
  () => ({
    method: "GET",
    url: path,
    headers: [],
    host: "a.example",
    tls: false,
    ip: "192.0.2.1",
    httpVersion: "HTTP/1.1",
  });
const upload = (content: string) => ({ mainModule: "a.js", modules: [{ name: "a.js", content }] });
const rule = (snippetName: string, path: string, enabled = true) => ({
  snippetName,
  expression: `http.request.uri.path eq "${path}"`,
  description: "",
  enabled,
});

async function platform(
  storage: Storage,
): Promise<{ snippets: Snippets; rulesets: Rulesets; zones: Zones; zone: Zone }> {
  onTestFinished(() => storage.close());
  const accounts = new Accounts(storage);
  const { config } = loadConfig({ ephemeral: true }, {}, undefined);
  const owner = await ensureOwner(
    config,
    storage,
    accounts,
    new Tokens(storage, accounts, await ensurePepper(storage), noZones),
  );
  const zones = new Zones(storage, {
    nameServers: ["a", "b"],
    defaultPlan: "enterprise",
    activation: staticActivation,
  });
  const rulesets = new Rulesets(storage);
  const snippets = new Snippets(storage, rulesets);
  zones.onChange((id, zone) => zone ?? snippets.forget(id));
  const zone = await zones.create({ accountId: owner.account.id, name: "snippets.example", type: "full" });
  return { snippets, rulesets, zones, zone };
}

describeStorage("snippets of the edge", (open) => {
  it("are updated before the API responds to a change", async () => {
    const { snippets, zone } = await platform(await open());
    expect(snippets.snippetRules(zone.id)).toEqual([]);
    await snippets.put(zone, "a", upload("1"));
    await snippets.put(zone, "b", upload("2"));
    expect(snippets.snippet(zone.id, "a")).toBeUndefined(); // it has no rule
    await snippets.replaceRules(zone.id, [rule("b", "/b"), rule("a", "/a")]);
    const matching = (path: string) =>
      snippets
        .snippetRules(zone.id)
        .flatMap((each) => (each.matches(describeRequest(path)) ? [each.snippetName] : []));
    expect(snippets.snippetRules(zone.id).map((each) => each.snippetName)).toEqual(["b", "a"]);
    expect([matching("/a"), matching("/b"), matching("/c")]).toEqual([["a"], ["b"], []]);

    const first = snippets.snippet(zone.id, "a")!;
    expect(first).toMatchObject({ mainModule: "a.js", modules: [{ name: "a.js", content: "1" }] });
    await snippets.put(zone, "a", upload("1"));
    expect(snippets.snippet(zone.id, "a")!.id).toBe(first.id); // unchanged code keeps its version
    await snippets.put(zone, "a", upload("3"));
    const second = snippets.snippet(zone.id, "a")!;
    expect(second.id).not.toBe(first.id);
    expect(second.modules[0]!.content).toBe("3");

    await snippets.replaceRules(zone.id, [rule("a", "/a", false), rule("b", "/a")]);
    expect(matching("/a")).toEqual(["b"]);
    expect(snippets.snippet(zone.id, "a")).toBeUndefined();
    await snippets.replaceRules(zone.id, []);
    expect(matching("/a")).toEqual([]);
  });

  it("stay unchanged when one rule is refused", async () => {
    const { snippets, zone } = await platform(await open());
    await snippets.put(zone, "a", upload("1"));
    await snippets.replaceRules(zone.id, [rule("a", "/a")]);
    const before = await snippets.rules(zone.id);
    await expect(snippets.replaceRules(zone.id, [rule("a", "/x"), rule("none", "/y")])).rejects.toThrow(
      "rules[1]",
    );
    expect(await snippets.rules(zone.id)).toEqual(before);
    expect(snippets.snippetRules(zone.id)[0]!.matches(describeRequest("/a"))).toBe(true);
  });

  it("are loaded at startup", async () => {
    const storage = await open();
    const { snippets, zone } = await platform(storage);
    await snippets.put(zone, "a", upload("1"));
    await snippets.replaceRules(zone.id, [rule("a", "/a")]);
    const later = new Snippets(storage, new Rulesets(storage));
    await later.load();
    expect(later.snippet(zone.id, "a")).toEqual(snippets.snippet(zone.id, "a"));
    expect(later.snippetRules(zone.id).map((each) => each.expression)).toEqual([rule("a", "/a").expression]);
  });

  it("are removed with the ruleset and with the zone", async () => {
    const { snippets, rulesets, zones, zone } = await platform(await open());
    await snippets.put(zone, "a", upload("1"));
    await snippets.replaceRules(zone.id, [rule("a", "/a")]);
    const { id } = await rulesets.entrypoint(zone.id, "http_request_snippets");
    await rulesets.delete(zone.id, id);
    expect(snippets.snippetRules(zone.id)).toEqual([]);
    await snippets.replaceRules(zone.id, [rule("a", "/a")]);
    await zones.delete(zone);
    expect(snippets.snippetRules(zone.id)).toEqual([]);
    expect(await snippets.list(zone.id)).toEqual([]);
  });

  it("are never deleted while a rule for them is being created", async () => {
    const { snippets, zone } = await platform(await open());
    await snippets.put(zone, "a", upload("1"));
    const [made, gone] = await Promise.allSettled([
      snippets.replaceRules(zone.id, [rule("a", "/a")]),
      snippets.delete(zone.id, "a"),
    ]);
    expect([made.status, gone.status].toSorted()).toEqual(["fulfilled", "rejected"]);
    const rules = await snippets.rules(zone.id);
    expect(rules.length).toBe((await snippets.list(zone.id)).length);
  });

  it("end at the last of many concurrent changes", async () => {
    const { snippets, zone } = await platform(await open());
    await snippets.put(zone, "a", upload("0"));
    await snippets.replaceRules(zone.id, [rule("a", "/a")]);
    await Promise.all(Array.from({ length: 20 }, (_, i) => snippets.put(zone, "a", upload(String(i)))));
    expect(snippets.snippet(zone.id, "a")).toMatchObject({
      modules: (await snippets.find(zone.id, "a")).modules,
    });
  });
});

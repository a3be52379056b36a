import { describe, expect, it, vi } from "vitest";
import { AddressPolicy } from "./address-policy.ts";
import { resolveName, resolveTargets, systemLookUp } from "./resolve.ts";
import { EdgeSnapshot, EdgeZone } from "../configuration/snapshot.ts";
import { host, startEdge, startOrigin, requestEdge } from "../request/test-edge.ts";

const alias = { isProxied: true, targets: [{ type: "CNAME", content: "fickle.test" }] } as const;

describe("a name whose address changes", () => {
  it("is checked by the address of the connection, at each request", async () => {
    const { port: originPort } = await startOrigin((_incoming, response) => response.end("secret"));
    const policy = new AddressPolicy("all");
    let answers: string[] = ["127.0.0.1"];
    const edge = await startEdge({ originPort, policy, lookUp: async () => answers });
    edge.zone.setHost(host, alias);
    expect((await requestEdge(edge.port)).body).toBe("secret");
    policy.forbidListener(originPort);
    // The earlier connection is still open and must not be used.
    for (const address of [
      "127.0.0.1",
      "::ffff:127.0.0.1",
      "0:0:0:0:0:0:0:1",
      "0.0.0.0",
      "::ffff:0:7f00:1",
    ]) {
      answers = [address];
      const { status, body } = await requestEdge(edge.port);
      expect([status, body.includes("error 1000")], address).toEqual([403, true]);
    }
    answers = [];
    expect((await requestEdge(edge.port)).status).toBe(530);
    answers = ["not an address"];
    expect((await requestEdge(edge.port)).status).toBe(530);
  });

  it("is resolved once per request: the checked address is the one used", async () => {
    const { port: originPort } = await startOrigin((_incoming, response) => response.end("ok"));
    const asked: string[] = [];
    const edge = await startEdge({
      originPort,
      lookUp: async (name) => {
        asked.push(name);
        return ["127.0.0.1"];
      },
    });
    edge.zone.setHost(host, alias);
    expect((await requestEdge(edge.port)).status).toBe(200);
    expect(asked).toEqual(["fickle.test"]);
  });

  it("forbidden addresses are skipped, and the others are used", async () => {
    const { port: originPort } = await startOrigin((_incoming, response) => response.end("ok"));
    const policy = new AddressPolicy("origins");
    const edge = await startEdge({
      originPort,
      policy,
      lookUp: async () => ["fe80::1%lo", "127.0.0.1"],
    });
    edge.zone.setHost(host, alias);
    expect((await requestEdge(edge.port)).body).toBe("ok");
  });
});

describe("the addresses of a record", () => {
  const zone = new EdgeZone("z", "example.com", false);
  const snapshot = new EdgeSnapshot();
  snapshot.add(zone);
  zone.setHost("a.example.com", { isProxied: false, targets: [{ type: "A", content: "192.0.2.1" }] });
  zone.setHost("b.example.com", { isProxied: true, targets: [{ type: "CNAME", content: "a.example.com" }] });
  zone.setHost("out.example.com", { isProxied: true, targets: [{ type: "CNAME", content: "out.test" }] });
  zone.setHost("text.example.com", { isProxied: false, targets: [] });
  for (let i = 0; i < 20; i++) {
    zone.setHost(`c${i}.example.com`, {
      isProxied: true,
      targets: [{ type: "CNAME", content: `c${i + 1}.example.com` }],
    });
  }
  const lookUp = async (name: string): Promise<string[]> => {
    if (name.endsWith(".example.com")) throw new Error("no such name");
    return [`address of ${name}`];
  };

  it("are its own, or those of its target names; own zones are resolved from memory", async () => {
    const both = [
      { type: "A", content: "192.0.2.1" },
      { type: "AAAA", content: "2001:db8::1" },
    ] as const;
    expect(await resolveTargets(both, snapshot, lookUp)).toEqual(["192.0.2.1", "2001:db8::1"]);
    expect(await resolveName("b.example.com", snapshot, lookUp)).toEqual(["192.0.2.1"]);
    expect(await resolveName("out.example.com", snapshot, lookUp)).toEqual(["address of out.test"]);
    expect(await resolveName("192.0.2.9", snapshot, lookUp)).toEqual(["192.0.2.9"]);
  });

  it.each(["c0.example.com", "text.example.com", "missing.example.com"])("%s has none", async (name) => {
    await expect(resolveName(name, snapshot, lookUp)).rejects.toMatchObject({ code: 1016 });
  });
});

describe("the resolver of names outside our zones", () => {
  it("is asked once for concurrent requests of a name", async () => {
    const ask = vi.fn<(name: string) => Promise<string[]>>(async () => ["192.0.2.1"]);
    const lookUp = systemLookUp(ask);
    const answers = await Promise.all(Array.from({ length: 50 }, () => lookUp("busy.test")));
    expect(new Set(answers.flat())).toEqual(new Set(["192.0.2.1"]));
    await lookUp("busy.test");
    expect(ask).toHaveBeenCalledTimes(1);
  });

  it("is not asked again immediately after a failure", async () => {
    const ask = vi.fn<(name: string) => Promise<string[]>>(() => Promise.reject(new Error("ENOTFOUND")));
    const lookUp = systemLookUp(ask);
    for (let i = 0; i < 5; i++) await expect(lookUp("none.test")).rejects.toThrow("ENOTFOUND");
    expect(ask).toHaveBeenCalledTimes(1);
  });

  it("has a timeout, so that visitors do not wait for one that never responds", async () => {
    const { port: originPort } = await startOrigin((_incoming, response) => response.end("never"));
    const lookUp = systemLookUp(() => new Promise(() => {}), 20);
    const edge = await startEdge({ originPort, lookUp });
    edge.zone.setHost(host, alias);
    const { status, body } = await requestEdge(edge.port);
    expect([status, body.includes("error 1016")]).toEqual([530, true]);
  });

  it("that stops responding is replaced by its earlier answers", async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    try {
      const ask = vi
        .fn<(name: string) => Promise<string[]>>(() => new Promise(() => {}))
        .mockResolvedValueOnce(["192.0.2.1"]);
      const lookUp = systemLookUp(ask, 20);
      await lookUp("fading.test");
      vi.advanceTimersByTime(60_000);
      expect(await lookUp("fading.test")).toEqual(["192.0.2.1"]);
      expect(ask).toHaveBeenCalledTimes(2);
    } finally {
      vi.useRealTimers();
    }
  });
});

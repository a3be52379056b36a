import { once } from "node:events";
import { createSocket } from "node:dgram";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import dnsPacket from "dns-packet";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deploy, zoneWith } from "./helpers.ts";

let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "faults" });
});
afterAll(() => edge.close());
beforeEach(() => edge.reset());

const record = { type: "A", name: "www.shop.example", content: "192.0.2.1" };

describe("faults of the name server", () => {
  type Answer = dnsPacket.DecodedPacket & { rcode: string };
  /** The answer to one question over UDP; undefined if there is none until the signal. */
  async function ask(type: "A" | "TXT" = "A", signal?: AbortSignal): Promise<Answer | undefined> {
    const { host, port } = edge.urls.dns;
    const socket = createSocket("udp4");
    const question = { type, name: "www.shop.example" } as const;
    socket.send(
      dnsPacket.encode({ type: "query", id: 7, flags: dnsPacket.RECURSION_DESIRED, questions: [question] }),
      port,
      host,
    );
    try {
      const [message] = (await once(socket, "message", { signal })) as [Buffer];
      return dnsPacket.decode(message) as Answer; // its types lack the field
    } catch (error) {
      if (signal?.aborted !== true) throw error;
      return undefined;
    } finally {
      socket.close();
    }
  }

  it.each([
    ["servfail", "SERVFAIL"],
    ["refused", "REFUSED"],
    ["nxdomain", "NXDOMAIN"],
  ] as const)("%s is the answer to this name and type alone", async (then, rcode) => {
    await zoneWith(edge, record);
    await edge.faults.dns({ name: "www.shop.example", type: "A", then });
    const answer = await ask();
    expect([answer?.rcode, answer?.id, answer?.questions?.[0]?.name]).toEqual([rcode, 7, "www.shop.example"]);
    expect((await ask("TXT"))?.rcode).toBe("NOERROR");
    await edge.faults.clear();
    expect((await ask())?.answers).toMatchObject([{ data: "192.0.2.1" }]);
  });

  it("a dropped question is asked again, a truncated answer over TCP", async () => {
    await zoneWith(edge, record);
    const dropped = await edge.faults.dns({ name: "www.shop.example", times: 1, then: "drop" });
    expect(await ask("A", AbortSignal.timeout(300))).toBeUndefined();
    expect((await ask())?.rcode).toBe("NOERROR");
    expect(await dropped.hits()).toBe(1);
    const truncated = await edge.faults.dns({ name: "www.shop.example", then: "truncate" });
    expect(await ask()).toMatchObject({ flag_tc: true, answers: [] });
    expect(await edge.dig("www.shop.example")).toEqual(["192.0.2.1"]);
    expect(await truncated.hits()).toBe(2);
    await expect(edge.faults.dns({ type: "WKS", then: "drop" })).rejects.toThrow("for type");
  });
});

describe("faults of storage", () => {
  const create = async (): Promise<[status: number, code: number | undefined]> => {
    const answer = await fetch(`${edge.urls.api}/zones`, {
      method: "POST",
      headers: { authorization: `Bearer ${edge.token}`, "content-type": "application/json" },
      body: JSON.stringify({ account: { id: edge.accountId }, name: "shop.example", type: "full" }),
    });
    const { errors } = (await answer.json()) as { errors: { code: number }[] };
    return [answer.status, errors[0]?.code];
  };

  it("a full disk and a lost database are reported, write nothing, and end when cleared", async () => {
    await using full = await edge.faults.storage({ then: "full" });
    expect(await create()).toEqual([507, 10507]);
    await full.remove();
    const lost = await edge.faults.storage({ of: "rows", then: "lost" });
    expect(await create()).toEqual([503, 10503]);
    expect(await lost.hits()).toBeGreaterThan(0);
    expect(await call(edge, "GET", "/zones")).toEqual([]);
    await edge.faults.clear();
    expect(await create()).toEqual([200, undefined]);
  });

  it("a reset ends a fault, and a snapshot is kept in spite of one", async () => {
    await edge.faults.storage({ then: "lost" });
    await edge.snapshot("kept");
    await edge.restore("kept");
    await edge.reset();
    expect(await create()).toEqual([200, undefined]);
  });

  it("blobs have faults of their own", async () => {
    const { id } = await call<{ id: string }>(
      edge,
      "POST",
      `/accounts/${edge.accountId}/storage/kv/namespaces`,
      { title: "large" },
    );
    const put = async (bytes: number): Promise<number> => {
      const url = `${edge.urls.api}/accounts/${edge.accountId}/storage/kv/namespaces/${id}/values/key`;
      const headers = { authorization: `Bearer ${edge.token}` };
      return (await fetch(url, { method: "PUT", headers, body: "x".repeat(bytes) })).status;
    };
    await edge.faults.storage({ of: "blobs", then: "lost" });
    expect([await put(10), await put(2_000_000)]).toEqual([200, 503]);
    await edge.faults.clear();
    expect(await put(2_000_000)).toBe(200);
  });

  it("a slow disk delays each write", async () => {
    await edge.faults.storage({ then: { delayMs: 100 } });
    const begun = performance.now();
    expect(await create()).toEqual([200, undefined]);
    expect(performance.now() - begun).toBeGreaterThan(95);
  });
});

describe("faults of cells", () => {
  const source = `export default { async fetch(request) {
    await request.text();
    await new Promise((resolve) => setTimeout(resolve, 100));
    return new Response("done");
  } }`;
  const visit = async (init: RequestInit = {}): Promise<[number, string]> => {
    const answer = await edge.fetch("http://www.shop.example/", init);
    return [answer.status, await answer.text()];
  };
  beforeEach(async () => {
    const zone_id = await zoneWith(edge, { ...record, name: "api.shop.example" });
    await deploy(edge, "worker", source, { hostname: "www.shop.example", zone_id });
  });

  it("CPU time and memory are exceeded in runs of this script", async () => {
    await edge.faults.cells({ script: "worker", times: 1, then: "cpu" });
    await edge.faults.cells({ script: "other", then: "memory" });
    const [status, page] = await visit();
    expect([status, page.includes("CPU time limit")]).toEqual([503, true]);
    expect(await visit()).toEqual([200, "done"]);
    await edge.faults.cells({ script: "worker", times: 1, then: "memory" });
    expect((await visit())[1]).toContain("memory limit");
  });

  it("a crash is hidden from a request that can be repeated, and reported to another", async () => {
    const fault = await edge.faults.cells({ script: "worker", times: 2, then: "crash" });
    expect(await visit()).toEqual([200, "done"]);
    expect((await visit({ method: "POST", body: "x".repeat(100_000) }))[0]).toBeGreaterThanOrEqual(200);
    expect(await fault.hits()).toBe(2);
  });

  it("a cell starts slowly, and cells can be killed", async () => {
    await edge.faults.cells({ then: { startMs: 150 } });
    const begun = performance.now();
    expect(await visit()).toEqual([200, "done"]);
    expect(performance.now() - begun).toBeGreaterThan(245);
    expect(await edge.kill({ script: "other" })).toBe(0);
    expect(await edge.kill({ script: "worker" })).toBe(1);
    expect(await visit()).toEqual([200, "done"]);
    expect(await edge.kill({ script: "worker", signal: "STOP" })).toBe(1);
    // A stopped process does not answer. The visit ends with it, and is sent again to another one.
    const visited = visit();
    expect(await edge.kill({ script: "worker" })).toBe(1);
    expect(await visited).toEqual([200, "done"]);
  });
});

import { execFileSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startHosting, type Hosting } from "../platform.ts";
import { usePrison } from "./prison.ts";

const prison = usePrison();

describe("addresses", () => {
  const metadata = "169.254.169.254";
  let listener: Server | undefined;
  let reached = 0;
  let strict: Hosting;
  beforeAll(async () => {
    strict = await startHosting();
    // A leak would reach this machine, where the test sees it.
    try {
      if (
        !Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === metadata))
      )
        execFileSync("ip", ["addr", "add", `${metadata}/32`, "dev", "lo"], { stdio: "ignore" });
    } catch {
      return; // only root may; then the test sees the refusal only
    }
    listener = createServer((_request, response) => {
      reached++;
      response.end("role credentials");
    });
    await new Promise<void>((resolve) => listener!.listen(80, metadata, resolve));
  });
  afterAll(async () => {
    listener?.close();
    if (listener !== undefined) execFileSync("ip", ["addr", "del", `${metadata}/32`, "dev", "lo"]);
    await strict.close(0);
  });

  const fetched = async (platform: Hosting, url: string): Promise<unknown> => {
    await platform.deploy(
      "reaching",
      `export default { async fetch() {
        try { const answer = await fetch(${JSON.stringify(url)}, { headers: { authorization: "Bearer owner-token-for-tests" } }); return new Response("reached " + answer.status); }
        catch (error) { return new Response("refused"); }
      } };`,
    );
    return (await platform.ask("reaching")).body;
  };

  test.each([
    `http://${metadata}/latest/meta-data/`,
    "http://2852039166/latest/meta-data/",
    "http://0xa9.0xfe.0xa9.0xfe/",
    `http://[::ffff:${metadata}]/`,
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://127.0.0.1:22/",
    "http://localhost/",
    "http://0/",
    "http://[::1]/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "http://100.100.100.200/",
    "http://[fd00:ec2::254]/",
    "file:///etc/passwd",
    "unix:/run/gateway.sock",
    "blob:http://x/y",
  ])("%s is not reached", async (url) => {
    expect(await fetched(strict, url)).toBe("refused");
    expect(reached).toBe(0);
  });

  test("the name of a script that is not there is answered by the edge itself", async () => {
    expect(await fetched(strict, "http://nothing.workers.localhost/")).toBe("reached 404");
    expect(reached).toBe(0);
  });

  test("the API and the DNS listener are not reached, even where private addresses are", async () => {
    const api = new URL(prison.hosting.ready.api);
    const dns = new URL(`http://${prison.hosting.ready.dns}`);
    for (const host of ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]"]) {
      expect(await fetched(prison.hosting, `http://${host}:${api.port}/client/v4/user/tokens/verify`)).toBe(
        "refused",
      );
      expect(await fetched(prison.hosting, `http://${host}:${dns.port}/`)).toBe("refused");
    }
    expect(await fetched(prison.hosting, prison.outside.url)).toBe("reached 200");
  });

  test("the gateway's internal URLs are ordinary addresses for scripts", async () => {
    for (const url of [
      "http://gateway/script/x",
      "http://gateway/nested",
      "http://gateway/",
      "http://cell/unload",
      "http://cell/",
      "http://binding/value?key=password",
    ])
      expect(await prison.hostile(`return (await fetch(${JSON.stringify(url)})).status`)).toBe(403);
    await prison.hosting.deploy(
      "asking-the-gateway",
      `export default { async fetch() {
        const results = [];
        for (const path of ["script/" + encodeURIComponent("x"), "nested"])
          results.push(await fetch("http://gateway/" + path, { headers: { "x-selvedge-outcome": "guess" } }).then(({ status }) => status, () => "refused"));
        return Response.json(results);
      } };`,
    );
    expect(JSON.parse((await prison.hosting.ask("asking-the-gateway")).body)).toEqual(["refused", "refused"]);
  });
});

import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { startPostgres } from "./helpers/postgres.ts";
import { serve, temporaryFolder, type ServerProcess } from "./helpers/process.ts";
import { requestEdge } from "./helpers/edge-request.ts";

const token = "process-test-token";
const call = async (
  server: ServerProcess,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; result: never }> => {
  const response = await fetch(`${server.ready.api}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, result: ((await response.json()) as { result: never }).result };
};

/** Writes from eight clients until the process is killed, and counts only acknowledged writes. */
async function killWhileWriting(args: readonly string[]): Promise<void> {
  const environment = { SELVEDGE_API_TOKEN: token, SELVEDGE_API_RATE_LIMIT: "0" };
  const server = await serve(args, environment);
  const zone: { id: string } = (await call(server, "POST", "/zones", { name: "killed.example" })).result;
  const acknowledged: string[] = [];
  const enough = 300;
  await Promise.all(
    Array.from({ length: 8 }, async (_, side) => {
      for (let i = 0; ; i++) {
        const body = { type: "TXT", name: `r-${side}-${i}`, content: "x", ttl: 60 };
        const answer = await call(server, "POST", `/zones/${zone.id}/dns_records`, body).catch(
          () => undefined,
        );
        if (answer === undefined) return;
        acknowledged.push((answer.result as { id: string }).id);
        if (acknowledged.length >= enough) server.process.kill("SIGKILL");
      }
    }),
  );
  expect(await server.exited).toBe("SIGKILL");
  const again = await serve(args, environment);
  const records: { id: string }[] = (await call(again, "GET", `/zones/${zone.id}/dns_records?per_page=5000`))
    .result;
  const found = new Set(records.map((record) => record.id));
  expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
  again.process.kill("SIGTERM");
  expect(await again.exited).toBe(0);
}

it("loses no acknowledged write when it is killed, on SQLite", async () => {
  await killWhileWriting(["--data-dir", temporaryFolder()]);
});

it("loses no acknowledged write when it is killed, on PostgreSQL", async () => {
  const postgres = await startPostgres();
  await killWhileWriting(["--database-url", await postgres.createDatabase()]);
  await postgres.stop();
});

it("prints a working token at the first start only", async () => {
  const dataDir = temporaryFolder();
  const first = await serve(["--data-dir", dataDir]);
  const printed = /CLOUDFLARE_API_TOKEN=(\S+)/.exec(first.stdout())?.[1];
  const answer = await fetch(`${first.ready.api}/user/tokens/verify`, {
    headers: { authorization: `Bearer ${printed}` },
  });
  expect(answer.status).toBe(200);
  first.process.kill("SIGTERM");
  expect(await first.exited).toBe(0);
  const second = await serve(["--data-dir", dataDir]);
  expect(second.stdout()).not.toContain("CLOUDFLARE_API_TOKEN");
  expect(second.ready.account_id).toBe(first.ready.account_id);
  expect(second.stderr()).not.toContain(printed);
  second.process.kill("SIGTERM");
  await second.exited;
});

it("finishes requests in progress when it is stopped", async () => {
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const origin = createServer((_request, response) => {
    arrived.resolve();
    void release.promise.then(() => response.end("whole"));
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const server = await serve(["--ephemeral"], { SELVEDGE_API_TOKEN: token });
  const zone: { id: string } = (await call(server, "POST", "/zones", { name: "drain.example" })).result;
  await call(server, "POST", `/zones/${zone.id}/dns_records`, {
    type: "A",
    name: "@",
    content: "127.0.0.1",
    proxied: true,
  });
  await call(server, "PUT", `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      {
        action: "route",
        expression: "true",
        action_parameters: { origin: { port: (origin.address() as AddressInfo).port } },
      },
    ],
  });
  const visiting = requestEdge(server.ready.edge, "drain.example");
  await arrived.promise;
  server.process.kill("SIGTERM");
  await new Promise<void>((resolve) => {
    const check = (): void => {
      if (server.stderr().includes("stopping")) resolve();
      else setTimeout(check, 10);
    };
    check();
  });
  release.resolve();
  expect(await visiting).toMatchObject({ status: 200, body: "whole" });
  expect(await server.exited).toBe(0);
  origin.close();
});

it("answers health checks, and reveals nothing else without credentials", async () => {
  const server = await serve(["--ephemeral"], { SELVEDGE_API_TOKEN: token });
  const base = new URL(server.ready.api).origin;
  for (const path of ["/healthz", "/readyz"]) {
    const answer = await fetch(`${base}${path}`);
    expect([answer.status, await answer.json()]).toEqual([200, { status: "ok" }]);
  }
  server.process.kill("SIGTERM");
  await server.exited;
});

const run = (args: readonly string[], environment: Record<string, string> = {}) =>
  spawnSync(process.execPath, ["bin/selvedge.js", ...args], {
    encoding: "utf8",
    env: { ...process.env, ...environment },
  });

it("shows the configuration with its origins and without its secrets", () => {
  const { stdout, status } = run(["config", "print", "--colo", "XYZ"], {
    SELVEDGE_API_TOKEN: "do-not-show-me",
  });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^colo +flag +"XYZ"$/m);
  expect(stdout).toMatch(/^api-token +environment +"\*+"$/m);
  expect(stdout).not.toContain("do-not-show-me");
});

it.each([
  [["srve"], "Did you mean serve?"],
  [["serve", "--api-lisen", "x"], "Did you mean --api-listen?"],
])("explains the error in %j", (args, message) => {
  const { stderr, status } = run(args);
  expect(stderr).toContain(message);
  expect(status).toBe(2);
});

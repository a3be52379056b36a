import { rmSync } from "node:fs";
import { connect } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { startPostgres } from "../helpers/postgres.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { hasPebble, preparePebble } from "./pebble.ts";

/** Two nodes and one database: either works for both, and answers challenges that the other has started. */
it.skipIf(!hasPebble && process.env["CI_TOOLS"] !== "1")(
  "nodes that share a database share the account, the challenges and the certificates",
  async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const databaseUrl = await postgres.createDatabase();
    const pebble = await preparePebble(3600);
    onTestFinished(() => pebble.stop());
    const start = async (): Promise<TestServer> => {
      const dataDir = temporaryFolder();
      onTestFinished(() => rmSync(dataDir, { recursive: true }));
      const node = await startTestServer({
        databaseUrl,
        blobUrl: "postgres",
        ephemeral: false,
        dataDir,
        edgeTlsListen: "127.0.0.1:0",
        acmeDirectory: pebble.directory,
        acmeCa: pebble.ca,
        acmeRetrySeconds: 5,
      });
      onTestFinished(() => node.close(0));
      return node;
    };
    const first = await start();
    const second = await start();
    // The authority validates at the second node only, whichever node orders the certificate.
    await pebble.start(second.ready.dns, Number(new URL(second.ready.edge).port));
    const root = await pebble.root();
    const names = Array.from({ length: 6 }, (_, i) => `shared-${i}-acme-test.org`);
    const ids = await Promise.all(
      names.map(async (name, i) => {
        const { id } = (await first.call("POST", "/zones", { name })).body.result as { id: string };
        const record = { type: "A", name: "www", content: "127.0.0.1", proxied: true };
        await first.call("POST", `/zones/${id}/dns_records`, record);
        if (i < 3)
          await first.call("POST", `/zones/${id}/ssl/certificate_packs/order`, {
            type: "advanced",
            hosts: [`www.${name}`],
            validation_method: "http",
            validity_days: 90,
            certificate_authority: "lets_encrypt",
          });
        return id;
      }),
    );
    const states = async (): Promise<string[]> => {
      const lists = ids.map(
        async (id) => (await second.call("GET", `/zones/${id}/ssl/certificate_packs`)).body.result,
      );
      return ((await Promise.all(lists)) as { status: string }[][]).flat().map(({ status }) => status);
    };
    await expect.poll(states, { timeout: 60_000 }).toEqual(Array.from({ length: 9 }, () => "active"));
    const isTrusted = (node: TestServer, servername: string): Promise<boolean> =>
      new Promise((resolve, reject) => {
        const { port } = new URL(node.ready.edge_tls!);
        const options = {
          host: "127.0.0.1",
          port: Number(port),
          servername,
          ca: root,
          rejectUnauthorized: false,
        };
        const socket = connect(options, () => {
          resolve(socket.authorized);
          socket.destroy();
        });
        socket.on("error", reject);
      });
    for (const node of [first, second])
      for (const name of names) await expect.poll(() => isTrusted(node, `www.${name}`)).toBe(true);
  },
);

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { freePort } from "../helpers/free-port.ts";

/** Pebble, Let's Encrypt's ACME authority for tests, as a separate process. */
export const hasPebble = spawnSync("pebble", ["-h"]).error === undefined;

export interface Pebble {
  directory: string;
  /** File with the CA of the directory's own certificate. */
  ca: string;
  /** The root of the certificates that it issues, in PEM. */
  root(): Promise<string>;
  start(nameServer: string, httpPort: number): Promise<void>;
  /** Restarts without its state and with a new root. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Reserves Pebble's address; it starts when the name server for its validation is known. */
export async function preparePebble(
  certificateSeconds: number,
  externalAccount?: { kid: string; key: string },
): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-pebble-"));
  const [port, managementPort] = [await freePort(), await freePort()];
  const authority = openLocalAuthority(folder);
  const pair = authority.issue(["127.0.0.1"]);
  writeFileSync(join(folder, "pebble.pem"), pair.certificate);
  writeFileSync(join(folder, "pebble.key"), pair.privateKey);
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, authority.certificate);
  let child: ReturnType<typeof spawn> | undefined;
  const get = async (url: string): Promise<string> => {
    const { request } = await import("node:https");
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { ca: authority.certificate, agent: false }, (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => (text += chunk.toString()));
        response.on("end", () => resolve(text));
      });
      outgoing.on("error", reject).end();
    });
  };
  const end = async (): Promise<void> => {
    const running = child;
    if (running === undefined || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill();
    await ended;
  };
  let again: () => Promise<void> = async () => {};
  const directory = `https://127.0.0.1:${port}/dir`;
  return {
    directory,
    ca,
    root: async () => get(`https://127.0.0.1:${managementPort}/roots/0`),
    async start(nameServer, httpPort) {
      const config = {
        pebble: {
          listenAddress: `127.0.0.1:${port}`,
          managementListenAddress: `127.0.0.1:${managementPort}`,
          certificate: join(folder, "pebble.pem"),
          privateKey: join(folder, "pebble.key"),
          httpPort,
          tlsPort: 1,
          ocspResponderURL: "",
          externalAccountBindingRequired: externalAccount !== undefined,
          externalAccountMACKeys:
            externalAccount === undefined ? {} : { [externalAccount.kid]: externalAccount.key },
          certificateValidityPeriod: certificateSeconds,
        },
      };
      const configFile = join(folder, "config.json");
      writeFileSync(configFile, JSON.stringify(config));
      again = async () => {
        const started = spawn("pebble", ["-config", configFile, "-dnsserver", nameServer, "-strict"], {
          env: { ...process.env, PEBBLE_VA_NOSLEEP: "1" },
          stdio: ["ignore", "pipe", "pipe"],
        });
        child = started;
        let log = "";
        for (const stream of [started.stdout, started.stderr])
          stream.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-10_000)));
        for (;;) {
          if (started.exitCode !== null) throw new Error(`Pebble ended: ${log}`);
          const isUp = await get(directory).then(
            () => true,
            () => false,
          );
          if (isUp) return;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      };
      await again();
    },
    async restart() {
      await end();
      await again();
    },
    async stop() {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

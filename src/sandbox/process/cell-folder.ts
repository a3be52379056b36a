import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { cellUser, certificateFile, configFile } from "./launch.ts";
import { cellHeaders } from "../protocol.ts";
import type { CellSettings } from "../settings.ts";
import { addObjects, rpcBinding, rpcHostWith, type ObjectStores } from "./object-config.ts";

import { encodeConfig, enumerant, type WorkerdConfig } from "./workerd-config.ts";
import { workerSource } from "./worker-sources.ts";

/** Modules of the system worker; the first one is its entrypoint. */
const systemParts = [
  "sandbox/worker/system.js",
  "sandbox/limits/admission.js",
  "sandbox/protocol.js",
  "sandbox/worker/calls.js",
  "sandbox/limits/worker/collect-early.js",
  "sandbox/worker/dispatch.js",
  "sandbox/dispatches/worker/counts.js",
  "sandbox/worker/hosts.js",
  "sandbox/worker/local-calls.js",
  "sandbox/objects/worker/local-runs.js",
  "sandbox/worker/loader.js",
  "sandbox/worker/objects.js",
  "sandbox/worker/path.js",
  "sandbox/worker/thrown.js",
  "platform/util/linger.js",
  "sandbox/worker/frames.js",
  "sandbox/worker/workflow-stream.js",
];

const compatibilityDate = "2026-11-01";

/** The folder of one cell: its configuration, and the sockets of the cell and of the gateway. */
export class CellFolder {
  readonly path: string;

  /** Creates the folder inside the folder of all cells. */
  constructor(cellsFolder: string) {
    this.path = mkdtempSync(join(cellsFolder, "cell-"));
  }

  get cellSocket(): string {
    return join(this.path, "cell.sock");
  }

  /** Where calls of objects in this cell arrive. */
  get rpcSocket(): string {
    return join(this.path, "rpc.sock");
  }

  get gatewaySocket(): string {
    return join(this.path, "gateway.sock");
  }

  /** `secret` marks messages of the system worker itself. */
  write(secret: string, v8Flags: readonly string[], settings: CellSettings, objects?: ObjectStores): void {
    mkdirSync(this.path, { recursive: true });
    const config = configFile();
    const content = configOf(secret, v8Flags, settings);
    if (objects !== undefined) addObjects(content, objects);
    writeFileSync(join(this.path, config), encodeConfig(content));
    // workerd needs a certificate to start. A cell makes no TLS connection, so any certificate will do.
    writeFileSync(join(this.path, certificateFile), rootCertificates[0]!);
    const user = cellUser();
    if (user !== undefined)
      for (const name of ["", config, certificateFile]) chownSync(join(this.path, name), user, user);
    chmodSync(this.path, 0o700);
  }

  /** Gives the cell's user access to a socket of the gateway. */
  allowConnect(socket: string): void {
    const user = cellUser();
    if (user !== undefined) chownSync(socket, user, user);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function configOf(secret: string, v8Flags: readonly string[], settings: CellSettings): WorkerdConfig {
  const { scriptsMax, inFlightMax, accountShare, objectCellsMax, remoteTunnels } = settings;
  const rpcBindings = Array.from({ length: objectCellsMax + remoteTunnels }, (_, slot) => rpcBinding(slot));
  return {
    v8Flags: [...v8Flags],
    services: [
      {
        name: "system",
        worker: {
          modules: systemParts.map((name) => ({ name, esModule: workerSource(name) })),
          compatibilityDate,
          compatibilityFlags: ["experimental", "nodejs_als"],
          bindings: [
            { name: "LOADER", workerLoader: { id: "scripts" } },
            { name: "GATEWAY", service: "gateway" },
            { name: "SECRET", text: secret },
            // workerd's client of D1: scripts get it as a template, and make their own with its class.
            {
              name: "D1",
              wrapped: {
                moduleName: "cloudflare-internal:d1-api",
                innerBindings: [{ name: "fetcher", service: "gateway" }],
              },
            },
            { name: "SCRIPTS_MAX", text: String(scriptsMax) },
            { name: "CALLS_MAX", text: String(inFlightMax) },
            { name: "ACCOUNT_CALLS_MAX", text: String(Math.max(1, Math.floor(inFlightMax * accountShare))) },
            ...rpcBindings.map((name) => ({ name, service: name })),
          ],
          globalOutbound: "gateway",
        },
      },
      // In proxy style the request line has the full URL, so that the gateway sees the scheme.
      { name: "gateway", external: { address: "unix:gateway.sock", http: { style: enumerant("proxy") } } },
      // The gateway joins these with the cells of objects. Nothing connects before the first call.
      ...rpcBindings.map((name, slot) => ({
        name,
        external: {
          address: "unix:gateway.sock",
          http: { style: enumerant("proxy" as const), capnpConnectHost: rpcHostWith(secret, slot) },
        },
      })),
    ],
    sockets: [
      {
        name: "main",
        address: "unix:cell.sock",
        service: "system",
        http: { cfBlobHeader: cellHeaders.metadata, forwardedProtoHeader: cellHeaders.proto },
      },
    ],
  };
}

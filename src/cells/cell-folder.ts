import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { cellUser, certificateFile } from "./launch.ts";
import { encodeConfig, enumerant, type WorkerdConfig } from "./workerd-config.ts";
import { workerSource } from "./worker-sources.ts";

/** Headers between the front and a cell. Nobody outside can send them: the front drops what begins so. */
export const internal = {
  prefix: "x-selvedge-",
  run: "x-selvedge-run",
  binding: "x-selvedge-binding",
  event: "x-selvedge-event",
  pass: "x-selvedge-pass",
  dispatch: "x-selvedge-dispatch",
  outbound: "x-selvedge-outbound",
  child: "x-selvedge-child",
  /** To a cell: JSON that arrives as `request.cf`, see worker/said.ts. */
  said: "x-selvedge-said",
  proto: "x-selvedge-proto",
  outcome: "x-selvedge-outcome",
  control: "x-selvedge-control",
  error: "x-selvedge-error",
  channel: "x-selvedge-channel",
} as const;

/** The first is where it begins. */
const systemParts = [
  "cells/worker/system.js",
  "cells/worker/collect-early.js",
  "cells/worker/dispatch.js",
  "cells/worker/loader.js",
  "cells/worker/said.js",
  "util/linger.js",
  "workflows/worker/lane.js",
];

const compatibilityDate = "2026-11-01";

/** A folder of a cell's own, with its configuration; the sockets of the cell and of the front appear in it. */
export class CellFolder {
  readonly path: string;

  /** In the folder of all. */
  constructor(cellsFolder: string) {
    this.path = mkdtempSync(join(cellsFolder, "cell-"));
  }

  get cellSocket(): string {
    return join(this.path, "cell.sock");
  }

  get frontSocket(): string {
    return join(this.path, "front.sock");
  }

  /** `secret` marks what the system worker itself says to the front. */
  write(secret: string, v8Flags: readonly string[], scriptsMax: number): void {
    mkdirSync(this.path, { recursive: true });
    writeFileSync(join(this.path, "config.capnp"), encodeConfig(configOf(secret, v8Flags, scriptsMax)));
    // workerd does not start without a certificate to trust. It makes no TLS connection here, so any one will do.
    writeFileSync(join(this.path, certificateFile), rootCertificates[0]!);
    const user = cellUser();
    if (user !== undefined) chownSync(this.path, user, user);
    chmodSync(this.path, 0o700);
  }

  /** Lets the cell's user connect to a socket of the front. */
  hand(socket: string): void {
    const user = cellUser();
    if (user !== undefined) chownSync(socket, user, user);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function configOf(secret: string, v8Flags: readonly string[], scriptsMax: number): WorkerdConfig {
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
            { name: "FRONT", service: "front" },
            { name: "SECRET", text: secret },
            { name: "SCRIPTS_MAX", text: String(scriptsMax) },
          ],
          globalOutbound: "front",
        },
      },
      // In proxy style the request line says the whole URL, so that the front sees the scheme.
      { name: "front", external: { address: "unix:front.sock", http: { style: enumerant("proxy") } } },
    ],
    sockets: [
      {
        name: "main",
        address: "unix:cell.sock",
        service: "system",
        http: { cfBlobHeader: internal.said, forwardedProtoHeader: internal.proto },
      },
    ],
  };
}

import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join, resolve } from "node:path";
import { openLocalAuthority } from "../../../src/edge/tls/certificates/local-authority.ts";
import { temporaryFolder } from "../../helpers/process.ts";

export interface Outcome {
  code: number | string;
  stdout: string;
  stderr: string;
}

export interface PublicApi {
  /** A working folder for the program. */
  folder: string;
  /** The file with the authority that a program must trust. */
  authority: string;
  run(
    command: string,
    args: readonly string[],
    environment?: Readonly<Record<string, string>>,
  ): Promise<Outcome>;
  close(): void;
}

const runTimeoutMs = 120_000;
const host = "api.cloudflare.com";

/**
 * Runs programs with a fixed API address in separate namespaces. There the name leads to the server's API,
 * over TLS and with a trusted certificate. The programs can reach nothing else.
 */
export async function asPublicApi(server: { ready: { api: string } }): Promise<PublicApi> {
  const folder = temporaryFolder();
  const authority = openLocalAuthority(folder);
  const { certificate, privateKey } = authority.issue([host]);
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const files = {
    authority: file("authority.pem", authority.certificate),
    certificate: file("server.pem", certificate),
    key: file("server.key", privateKey),
    hosts: file("hosts", `127.0.0.1 localhost ${host}\n`),
    socket: join(folder, "api.sock"),
  };
  mkdirSync(join(folder, "home"));
  // Every network namespace can reach a socket in the file system.
  const port = Number(new URL(server.ready.api).port);
  const relay = createServer((socket) => {
    const upstream = connect(port, "127.0.0.1");
    socket.pipe(upstream).pipe(socket);
    socket.on("error", () => upstream.destroy());
    upstream.on("error", () => socket.destroy());
  });
  await new Promise<void>((listening) => relay.listen(files.socket, listening));
  const script = `mount --bind ${files.hosts} /etc/hosts && ip link set lo up && exec "$@"`;
  const inside = [
    process.execPath,
    resolve(import.meta.dirname, "tls-proxy.ts"),
    files.socket,
    files.certificate,
  ];
  return {
    folder,
    authority: files.authority,
    run: async (command, args, environment = {}) =>
      new Promise((done) => {
        const all = ["-rmn", "sh", "-c", script, "sh", ...inside, files.key, command, ...args];
        const env = {
          PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
          HOME: join(folder, "home"),
          LANG: "C.UTF-8",
          SSL_CERT_FILE: files.authority,
          REQUESTS_CA_BUNDLE: files.authority,
          ...environment,
        };
        execFile("unshare", all, { env, timeout: runTimeoutMs, cwd: folder }, (error, stdout, stderr) =>
          done({ code: error === null ? 0 : (error.code ?? "killed"), stdout, stderr }),
        );
      }),
    close() {
      relay.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

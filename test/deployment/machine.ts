import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { freePort } from "../helpers/free-port.ts";

/** Ports that the pages name; each machine has its own instead. */
const portsOfPages = ["80", "443", "53", "8787", "8788", "9090"];

/** The programs that a machine has: of the clone, or a folder for `npm install --global`. */
export type Programs = { clone: true } | { prefix: true };

/**
 * A machine of an operator: a folder with its own /etc and /var, its own ports, and a shell in which commands of the pages
 * run. `systemctl` reads the real unit, and starts its ExecStart with its EnvironmentFile, as systemd does.
 */
export class Machine {
  readonly root = mkdtempSync(join(tmpdir(), "selvedge-machine-"));
  readonly folder = join(this.root, "work");
  readonly #ports: ReadonlyMap<string, number>;
  readonly #shell: ChildProcess;
  #output = "";
  #ended = false;

  private constructor(
    ports: ReadonlyMap<string, number>,
    programs: Programs,
    variables: Record<string, string>,
  ) {
    this.#ports = ports;
    const bin = join(this.root, "bin");
    for (const folder of [bin, this.folder, join(this.root, "var/lib")])
      mkdirSync(folder, { recursive: true });
    const systemctl = resolve("test/deployment/systemctl.js");
    script(join(bin, "systemctl"), `exec node ${systemctl} "$@"`);
    if ("clone" in programs) {
      script(join(bin, "selvedge"), `exec node ${resolve("bin/selvedge.js")} "$@"`);
      const modules = join(this.root, "modules");
      mkdirSync(modules);
      // `npm install --global` has nothing to do; `npm root --global` has the clone.
      script(join(bin, "npm"), `[ "$1" = root ] && echo ${modules} || true`);
      script(join(bin, "ln-clone"), `ln -s ${resolve(".")} ${modules}/selvedge`);
    }
    const environment = {
      ...process.env,
      ...variables,
      ROOT: this.root,
      PATH: [bin, join(this.root, "usr/bin"), process.env["PATH"]].join(":"),
      npm_config_prefix: join(this.root, "usr"),
    };
    this.#shell = spawn("bash", ["-euo", "pipefail"], {
      cwd: this.folder,
      env: environment,
      stdio: ["pipe", "pipe", "pipe"],
    });
    for (const stream of [this.#shell.stdout!, this.#shell.stderr!])
      stream.on("data", (chunk: Buffer) => (this.#output += chunk.toString()));
    this.#shell.on("close", () => (this.#ended = true));
    if ("clone" in programs) this.#shell.stdin!.write("ln-clone\n");
  }

  static async create(programs: Programs, variables: Record<string, string> = {}): Promise<Machine> {
    const ports = new Map<string, number>();
    for (const port of portsOfPages) ports.set(port, await freePort());
    return new Machine(ports, programs, variables);
  }

  /** The text of a page as it has to be on this machine. */
  localized(text: string): string {
    return text
      .replace(/(?<=^|[\s"'=])\/(etc|var)\//gm, `${this.root}/$1/`)
      .replaceAll("0.0.0.0:", "127.0.0.1:")
      .replace(
        /(?<=127\.0\.0\.1):(\d+)\b/g,
        (all, port: string) => `:${this.#ports.get(port) ?? all.slice(1)}`,
      );
  }

  urlOf(port: "80" | "8787" | "8788"): string {
    return `http://127.0.0.1:${this.#ports.get(port)}`;
  }

  write(name: string, text: string | Buffer): void {
    writeFileSync(join(this.folder, name), typeof text === "string" ? this.localized(text) : text);
  }

  /** Runs commands in the shell, and returns what they print. Throws if one fails. */
  async run(commands: string): Promise<string> {
    const end = `::end ${crypto.randomUUID()}`;
    this.#output = "";
    this.#shell.stdin!.write(`${this.localized(commands)}\necho "${end}"\n`);
    while (!this.#output.includes(end)) {
      if (this.#ended) throw new Error(`${commands}\nfailed:\n${this.#output}\n${this.journal()}`);
      await new Promise((done) => setTimeout(done, 20));
    }
    return this.#output.split(end)[0]!;
  }

  journal(): string {
    const file = join(this.root, "journal");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }

  /** The process of the service. */
  get pid(): number {
    return Number(readFileSync(join(this.root, "pid"), "utf8"));
  }

  /** The machine is gone: all processes of the service are killed at once. */
  kill(): void {
    process.kill(-this.pid, "SIGKILL");
  }

  remove(): void {
    this.#shell.kill();
    try {
      this.kill();
    } catch {
      // it has been stopped
    }
    rmSync(this.root, { recursive: true, force: true });
  }
}

function script(file: string, text: string): void {
  writeFileSync(file, `#!/bin/sh\n${text}\n`);
  chmodSync(file, 0o755);
}

import { execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { guardToken } from "./guard.ts";
import { objectsFolder, type ObjectStores } from "./object-config.ts";

/** The command that starts a cell's process. */
export interface Launch {
  command: string;
  args: string[];
  options: { cwd: string; env: { SSL_CERT_FILE: string }; uid?: number; gid?: number };
  /** Whether the process reports its pid on descriptor 4 (bubblewrap does). */
  reportsPid: boolean;
}

/** One measure that isolates cells from the machine. */
export interface Protection {
  name: string;
  isActive: boolean;
  /** The effect of the measure, or the way to enable it. */
  detail: string;
}

const nobody = 65_534;
/** In the cell's folder, which is the working directory of the process. */
export const certificateFile = "ca.pem";
/** In the same folder. Its name has the token by which the guard finds the processes of cells. */
export const configFile = (): string => `config-${guardToken()}.capnp`;

/** Path of the workerd binary of the installed package. */
export function workerdPath(): string {
  const resolve = createRequire(import.meta.url);
  const { arch, platform } = process;
  const name = `@cloudflare/workerd-${platform}-${arch === "x64" ? "64" : arch}/bin/workerd`;
  return resolve.resolve(name, { paths: [resolve.resolve("workerd/package.json")] });
}

interface Tools {
  workerd: string;
  isRoot: boolean;
  bubblewrap: string | undefined;
  setpriv: string | undefined;
}

let known: Tools | undefined;

/** Tools of this machine; detected once. */
function tools(): Tools {
  if (known !== undefined) return known;
  const workerd = workerdPath();
  const isRoot = process.getuid?.() === 0;
  const bwrap = find("bwrap");
  const setpriv = find("setpriv");
  const user = isRoot && canBeReachedByNobody(workerd) ? nobody : undefined;
  // Unprivileged namespaces may be forbidden, which only an attempt shows.
  const isWrapped =
    bwrap !== undefined && works(bwrap, [...wrapArguments(workerd), "/workerd", "--version"], user);
  known = { workerd, isRoot, bubblewrap: isWrapped ? bwrap : undefined, setpriv };
  return known;
}

/** The command that starts workerd in a cell's folder, with as few rights as this machine allows. */
export function launch(folder: string, objects?: ObjectStores): Launch {
  const { workerd, bubblewrap, setpriv } = tools();
  const serve = ["serve", "--experimental", "--control-fd=3", configFile()];
  const user = cellUser();
  const options = { cwd: folder, env: { SSL_CERT_FILE: certificateFile } };
  const inside =
    bubblewrap === undefined
      ? [workerd, ...serve]
      : [
          bubblewrap,
          ...wrapArguments(workerd),
          "--bind",
          folder,
          "/cell",
          // The cell sees only the folders of its own namespaces.
          ...(objects?.namespaces ?? []).flatMap((namespace) => [
            "--bind",
            join(objects!.folder, namespace),
            `/cell/${objectsFolder}/${namespace}`,
          ]),
          "--chdir",
          "/cell",
          "--info-fd",
          "4",
          "/workerd",
          ...serve,
        ];
  const reportsPid = bubblewrap !== undefined;
  if (setpriv !== undefined) {
    // The kernel kills the process when this program ends, also after `kill -9`.
    const args = [...(user === undefined ? [] : dropTo(user)), "--pdeathsig", "KILL", ...inside];
    return { command: setpriv, args, options, reportsPid };
  }
  const identity = user === undefined ? {} : { uid: user, gid: user };
  return { command: inside[0]!, args: inside.slice(1), options: { ...options, ...identity }, reportsPid };
}

const dropTo = (user: number): string[] => ["--reuid", `${user}`, "--regid", `${user}`, "--clear-groups"];

/** The user that cells run as, if it is not this program's own. The cells' folders are given to that user. */
export function cellUser(): number | undefined {
  const { workerd, isRoot } = tools();
  return isRoot && canBeReachedByNobody(workerd) ? nobody : undefined;
}

/** All measures that isolate customers' code, for `selvedge doctor` and the log. */
export function protections(): Protection[] {
  const { isRoot, bubblewrap, setpriv, workerd } = tools();
  const user = cellUser();
  return [
    {
      name: "bubblewrap",
      isActive: bubblewrap !== undefined,
      detail:
        bubblewrap !== undefined
          ? "cells see a file system of their own, no network and no other processes"
          : "install the package bubblewrap, and allow user namespaces: cells then see no files, network or processes",
    },
    {
      name: "own user",
      isActive: user !== undefined || !isRoot,
      detail:
        user !== undefined
          ? `cells run as user ${user}`
          : isRoot
            ? `the user ${nobody} cannot read ${workerd}: install where every user can read`
            : "cells run as the user of this process, which is not root; start as root to give them one of their own",
    },
    {
      name: "tied to their parent",
      isActive: bubblewrap !== undefined || setpriv !== undefined,
      detail:
        "the kernel ends cells with this process, however it ends (bubblewrap, or setpriv of util-linux); otherwise a shell does a moment later",
    },
    { name: "empty environment", isActive: true, detail: "cells inherit no variables and no open files" },
    {
      name: "no direct network access",
      isActive: true,
      detail: "scripts reach the network through this process only, which checks every address",
    },
  ];
}

function wrapArguments(workerd: string): string[] {
  const libraries = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"].filter((path) => existsSync(path));
  return [
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
    ...libraries.flatMap((path) => ["--ro-bind", path, path]),
    "--ro-bind",
    workerd,
    "/workerd",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
  ];
}

function find(name: string): string | undefined {
  return ["/usr/bin", "/usr/local/bin", "/bin"]
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function works(command: string, args: readonly string[], user: number | undefined): boolean {
  const identity = user === undefined ? {} : { uid: user, gid: user };
  try {
    execFileSync(command, args, { stdio: "ignore", timeout: 5000, env: {}, cwd: "/", ...identity });
    return true;
  } catch {
    return false;
  }
}

/** Whether a file and all folders above it are accessible to every user. */
/** Whether every user can pass through the folders of a path. */
export function canBeReachedByNobody(path: string): boolean {
  for (let at = path; at !== "/"; at = join(at, "..")) {
    if ((statSync(at).mode & 0o001) === 0) return false;
  }
  return true;
}

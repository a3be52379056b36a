import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

/** Real programs, downloaded at first use into a folder that git ignores, and installed nowhere else. */
const cache = resolve("node_modules/.cache/selvedge-clients");

/** The folder of a package, or the reason why it is not available. */
export type Installed = { folder: string } | { missing: string };

/** Debian packages with their dependencies that are not installed, unpacked at `folder`/usr/…. */
export function debian(...names: string[]): Installed {
  return once(join(cache, "debian", names.join("+")), (folder) => {
    const plan = run("apt-get", ["install", "--simulate", "--no-install-recommends", ...names]);
    const packages = [...plan.matchAll(/^Inst (\S+)/gm)].map(([, each]) => each!);
    const debs = join(folder, "debs");
    mkdirSync(debs, { recursive: true });
    // apt warns that its own user cannot write here, but downloads the files.
    run("apt-get", ["-o", "APT::Sandbox::User=root", "download", ...packages], debs);
    for (const deb of run("ls", [debs]).split("\n").filter(Boolean))
      run("dpkg-deb", ["-x", join(debs, deb), folder]);
    rmSync(debs, { recursive: true });
  });
}

/** Environment variables that make a Debian program find its files in the folder of its packages. */
export function environmentOf(folder: string): Record<string, string> {
  const usr = join(folder, "usr");
  const libraries = globSync(join(usr, "lib", "*-linux-gnu"));
  const perl = libraries.flatMap((each) => globSync(join(each, "perl5", "*")));
  return {
    PATH: [join(usr, "sbin"), join(usr, "bin"), "/usr/sbin:/usr/bin:/sbin:/bin"].join(":"),
    PYTHONPATH: join(usr, "lib", "python3", "dist-packages"),
    PERL5LIB: [join(usr, "share", "perl5"), ...perl].join(":"),
    LD_LIBRARY_PATH: libraries.join(":"),
  };
}

/** An npm package in one version with its dependencies, at `folder`/node_modules/…. */
export function npm(specifier: string): Installed {
  return once(join(cache, "npm", specifier.replaceAll("/", "+")), (folder) => {
    run("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", specifier]);
  });
}

function once(folder: string, install: (folder: string) => void): Installed {
  if (existsSync(folder)) return { folder };
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    install(unfinished);
    renameSync(unfinished, folder);
    return { folder };
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (existsSync(folder)) return { folder };
    return { missing: (error as Error).message.split("\n")[0]! };
  }
}

const run = (command: string, args: readonly string[], cwd?: string): string =>
  execFileSync(command, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    ...(cwd ? { cwd } : {}),
  });

/** The reason why programs cannot run in separate namespaces here; undefined if they can. */
export function namespacesMissing(): string | undefined {
  const tried = spawnSync("unshare", ["-rmn", "ip", "link", "set", "lo", "up"], { encoding: "utf8" });
  if (tried.status === 0) return undefined;
  return `namespaces: ${tried.error?.message ?? tried.stderr.trim()}`;
}

import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { accessSync, constants, existsSync, mkdirSync, readFileSync, statfsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { Cell } from "../../sandbox/cell.ts";
import { protections, workerdPath } from "../../sandbox/process/launch.ts";
import { cellDefaults } from "../../sandbox/settings.ts";
import { durationMs } from "../../platform/config/forms.ts";
import { openArchiveStore } from "../../platform/open-archive-store.ts";
import { checkBackupSettings, periodicBackups } from "../../platform/periodic-backups.ts";
import { parseAddress } from "../../platform/config/config.ts";
import { FolderOwner } from "../../platform/storage/folder-owner.ts";
import type { Config } from "../../platform/config/settings.ts";

const areas = ["versions", "protections", "cells", "listeners", "storage", "files"] as const;

/**
 * The result of one check. `advice` is a possible improvement; with a `fault`, the platform will not work.
 */
export interface Finding {
  area: (typeof areas)[number];
  name: string;
  state: "ok" | "advice" | "fault";
  detail: string;
}

const freeBytesAdvised = 1024 ** 3;

/**
 * Checks everything that `serve` needs with this configuration. Changes nothing, except that it creates a
 * missing data folder.
 */
export async function diagnose(config: Config): Promise<Finding[]> {
  const looking = [cell(), listeners(config), database(config), backups(config), geo(config)];
  const findings = [...versions(), ...protectionFindings(), ...dataFolder(config), ...certificates(config)];
  return [...findings, ...(await Promise.all(looking)).flat()].toSorted(
    (a, b) => areas.indexOf(a.area) - areas.indexOf(b.area),
  );
}

const protectionFindings = (): Finding[] =>
  protections().map(({ name, isActive, detail }) => ({
    area: "protections",
    name,
    state: isActive ? "ok" : "advice",
    detail,
  }));

function versions(): Finding[] {
  const version = (name: string, read: () => string): Finding =>
    attempt("versions", name, () => ({ state: "ok", detail: read() }));
  return [
    version("Node.js", () => `${process.version} on ${process.platform} ${process.arch}`),
    version("workerd", () =>
      execFileSync(workerdPath(), ["--version"], { encoding: "utf8" })
        .trim()
        .replace(/^workerd /, ""),
    ),
  ];
}

/** Starts a cell in the same way as `serve`, and stops it. */
async function cell(): Promise<Finding[]> {
  const finding = { area: "cells", name: "a cell starts" } as const;
  try {
    const start = performance.now();
    const booted = await Cell.boot(0, cellDefaults, () => {});
    const detail = `in ${Math.round(performance.now() - start)} ms, as process ${booted.process.pid}`;
    booted.close();
    await booted.process.exited;
    return [{ ...finding, state: "ok", detail }];
  } catch (error) {
    return [{ ...finding, state: "fault", detail: messageOf(error) }];
  }
}

async function listeners(config: Config): Promise<Finding[]> {
  const asked = [
    ["API", config.apiListen, "tcp"],
    ["edge", config.edgeListen, "tcp"],
    ["edge over TLS", config.edgeTlsListen, "tcp"],
    ["DNS over TCP", config.dnsListen, "tcp"],
    ["DNS over UDP", config.dnsListen, "udp"],
  ] as const;
  const findings = asked.map(async ([name, address, protocol]): Promise<Finding[]> => {
    if (address === undefined) return [];
    const { host, port } = parseAddress(address)!; // checked when the configuration was read
    const finding = { area: "listeners", name } as const;
    try {
      await (protocol === "tcp" ? tryTcp(host, port) : tryUdp(host, port));
      return [{ ...finding, state: "ok", detail: `${address} is free` }];
    } catch (error) {
      const isTaken = (error as { code?: string }).code === "EADDRINUSE";
      const detail = isTaken ? `${address} is in use, perhaps by a running platform` : messageOf(error);
      return [{ ...finding, state: isTaken ? "advice" : "fault", detail }];
    }
  });
  return (await Promise.all(findings)).flat();
}

function tryTcp(host: string, port: number): Promise<void> {
  const server = createServer();
  return new Promise((done, reject) => {
    server.once("error", reject).listen({ host, port, exclusive: true }, () => server.close(() => done()));
  });
}

function tryUdp(host: string, port: number): Promise<void> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  return new Promise((done, reject) => {
    socket.once("error", reject).bind({ address: host, port, exclusive: true }, () => socket.close(done));
  });
}

function dataFolder({ dataDir, ephemeral }: Config): Finding[] {
  if (ephemeral) return [];
  const folder = resolve(dataDir);
  return [
    attempt("storage", "data folder", () => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
      const { bavail, bsize } = statfsSync(folder);
      const free = `${folder}, ${((bavail * bsize) / freeBytesAdvised).toFixed(1)} GiB free`;
      const user = FolderOwner.find(folder);
      const details = [free];
      if (user !== undefined) details.push(`in use by process ${user.pid}, started ${user.started}`);
      // Others may have the permission to pass through (0711), which cells of Durable Objects may need.
      const isOpen = (statSync(folder).mode & 0o066) !== 0;
      if (isOpen) details.push("other users can read it until serve restricts access");
      return {
        state: isOpen || bavail * bsize < freeBytesAdvised ? "advice" : "ok",
        detail: details.join("; "),
      };
    }),
  ];
}

async function database({ databaseUrl, dataDir, ephemeral }: Config): Promise<Finding[]> {
  const finding = { area: "storage", name: "database" } as const;
  try {
    if (databaseUrl?.startsWith("postgres") === true) {
      const { default: pg } = await import("pg");
      const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5000 });
      await client.connect();
      const { rows } = await client.query<{ version: string }>("select version()");
      await client.end();
      return [{ ...finding, state: "ok", detail: rows[0]!.version }, await notifications(databaseUrl)];
    }
    const file = databaseUrl?.replace(/^sqlite:/, "") ?? join(dataDir, "selvedge.db");
    if (ephemeral || !existsSync(file))
      return [{ ...finding, state: "ok", detail: ephemeral ? "in memory" : `${file} will be created` }];
    const { DatabaseSync } = await import("node:sqlite");
    const opened = new DatabaseSync(file, { readOnly: true });
    const { quick_check: verdict } = opened.prepare("pragma quick_check(1)").get() as { quick_check: string };
    opened.close();
    return [{ ...finding, state: verdict === "ok" ? "ok" : "fault", detail: `${file}: ${verdict}` }];
  } catch (error) {
    return [{ ...finding, state: "fault", detail: messageOf(error) }];
  }
}

/** Whether PostgreSQL can notify nodes of each other's changes (LISTEN and NOTIFY). */
async function notifications(url: string): Promise<Finding> {
  const finding = { area: "storage", name: "notifications" } as const;
  const { notificationsArrive } = await import("../../platform/storage/changes/start-follower.ts");
  return (await notificationsArrive(url))
    ? { ...finding, state: "ok", detail: "nodes are notified of each other's changes at once" }
    : {
        ...finding,
        state: "advice",
        detail:
          "PostgreSQL cannot notify nodes through this connection, as with a pooler of transactions: changes reach other nodes within half a second. Connect directly, or pool sessions",
      };
}

/** A late backup is advice, because it is no reason not to start or to serve. */
async function backups(config: Config): Promise<Finding[]> {
  const finding = { area: "storage", name: "backups" } as const;
  const { backupEvery, backupFolder, ephemeral } = config;
  try {
    checkBackupSettings(config);
  } catch (error) {
    return [{ ...finding, state: "fault", detail: messageOf(error) }];
  }
  if (ephemeral) return [];
  if (backupEvery === undefined || backupFolder === undefined)
    return [{ ...finding, state: "advice", detail: "none are made periodically: set --backup-every" }];
  try {
    const store = await openArchiveStore(backupFolder, config, "--backup-folder");
    await using _closed = { [Symbol.asyncDispose]: async () => store.close() };
    const [newest] = await periodicBackups(store);
    if (newest === undefined)
      return [{ ...finding, state: "advice", detail: `there is none at ${store.shown} yet` }];
    const began = `the newest one at ${store.shown} began ${new Date(newest.timeMs).toISOString()}`;
    return Date.now() - newest.timeMs > 2 * durationMs(backupEvery)
      ? [{ ...finding, state: "advice", detail: `${began}, more than two intervals of ${backupEvery} ago` }]
      : [{ ...finding, state: "ok", detail: began }];
  } catch (error) {
    return [{ ...finding, state: "advice", detail: messageOf(error) }];
  }
}

async function geo({ geoCity, geoAsn }: Config): Promise<Finding[]> {
  const finding = { area: "files", name: "locations of addresses" } as const;
  if (geoCity === undefined && geoAsn === undefined) {
    const detail = "no database is configured, so request.cf and ip.src.country have no location";
    return [{ ...finding, state: "advice", detail }];
  }
  try {
    const { GeoDatabase } = await import("../../edge/client-info/geo.ts");
    const opened = await GeoDatabase.open({ city: geoCity, asn: geoAsn }, () => {});
    opened.close();
    const files = [geoCity, geoAsn].filter((file) => file !== undefined);
    return [{ ...finding, state: "ok", detail: files.join(", ") }];
  } catch (error) {
    return [{ ...finding, state: "fault", detail: messageOf(error) }];
  }
}

function certificates({ tlsCertificates, originCa }: Config): Finding[] {
  const files = [...tlsCertificates.flatMap((pair) => pair.split(":")), ...originCa];
  return files.map((file) =>
    attempt("files", file, () => {
      const isPem = readFileSync(file, "utf8").includes("-----BEGIN");
      return isPem ? { state: "ok", detail: "readable" } : { state: "fault", detail: "is not a PEM file" };
    }),
  );
}

function attempt(
  area: Finding["area"],
  name: string,
  look: () => Pick<Finding, "state" | "detail">,
): Finding {
  try {
    return { area, name, ...look() };
  } catch (error) {
    return { area, name, state: "fault", detail: messageOf(error) };
  }
}

const messageOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
};

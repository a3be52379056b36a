import { X509Certificate } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError } from "../platform/config/config.ts";
import { isBucket } from "../platform/open-archive-store.ts";
import type { Config } from "../platform/config/settings.ts";

/**
 * Checks the files and folders that settings name, and settings that depend on others, so that `serve` refuses wrong
 * ones before it starts or creates anything. Throws a ConfigError that names the setting.
 */
export async function checkFiles(config: Config): Promise<void> {
  const { dataDir, ephemeral, readyFile, tlsCertificates, originCa, acmeCa, imageFaceDetector } = config;
  if (!ephemeral) check("a folder that can be created or written", "data-dir", dataDir, writableFolder);
  const { backupFolder } = config;
  if (backupFolder !== undefined && !isBucket(backupFolder))
    check("a folder that can be created or written", "backup-folder", backupFolder, writableFolder);
  const inFolder = "a file in a folder that can be written";
  if (readyFile !== undefined) check(inFolder, "ready-file", readyFile, (file) => writable(dirname(file)));
  for (const [flag, file] of [
    ["access-log", config.accessLog],
    ["api-access-log", config.apiAccessLog],
  ] as const)
    if (file !== undefined && file !== "-") check(inFolder, flag, file, (path) => writable(dirname(path)));
  for (const file of originCa) check("a PEM file with certificates", "origin-ca", file, certificatesIn);
  if (acmeCa !== undefined) check("a PEM file with certificates", "acme-ca", acmeCa, certificatesIn);
  if (imageFaceDetector !== undefined)
    check("a module file", "image-face-detector", imageFaceDetector, readFileSync);
  if (tlsCertificates.length > 0) {
    const { readPair } = await import("../edge/tls/certificates/configured.ts");
    for (const pair of tlsCertificates)
      check("readable CERTIFICATE.pem:KEY.pem", "tls-certificates", pair, readPair);
  }
  await checkGeo(config);
  const { checkBackupSettings } = await import("../platform/periodic-backups.ts");
  const { blobUrlOf } = await import("../platform/open-blobs.ts");
  checkBackupSettings(config);
  blobUrlOf(config);
}

async function checkGeo({ geoCity, geoAsn }: Config): Promise<void> {
  if (geoCity === undefined && geoAsn === undefined) return;
  const { open } = await import("maxmind");
  for (const [flag, file] of [
    ["geo-city", geoCity],
    ["geo-asn", geoAsn],
  ] as const) {
    if (file === undefined) continue;
    await open(file).catch((error: unknown) => {
      throw refusal("an MMDB file", flag, file, error);
    });
  }
}

function check(expected: string, flag: string, value: string, look: (value: string) => unknown): void {
  try {
    look(value);
  } catch (error) {
    throw refusal(expected, flag, value, error);
  }
}

const refusal = (expected: string, flag: string, value: string, cause: unknown): ConfigError =>
  new ConfigError(
    `Expected ${expected} for ${flag} but received ${JSON.stringify(value)}: ${(cause as Error).message}`,
    { cause },
  );

function writable(folder: string): void {
  if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
  accessSync(folder, constants.W_OK | constants.X_OK);
}

/** The folder, or the nearest existing one above it, in which it will be created. */
function writableFolder(folder: string): void {
  let existing = resolve(folder);
  while (!existsSync(existing) && existing !== dirname(existing)) existing = dirname(existing);
  writable(existing);
}

function certificatesIn(file: string): void {
  const blocks = readFileSync(file, "utf8").match(
    /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g,
  );
  if (blocks === null) throw new Error("it contains no certificate");
  for (const block of blocks) parseCertificate(block);
}

const parseCertificate = (pem: string): X509Certificate => new X509Certificate(pem);

import { createPrivateKey, createPublicKey, randomBytes, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { authorityFiles } from "./authority-files.ts";
import {
  authorityCertificate,
  newKeys,
  serverCertificate,
  type KeyPair,
  type CertificateSigner,
} from "./x509.ts";

const authorityDays = 3650;
const serverDays = 90;

/**
 * This installation's own certificate authority, for names without another certificate. Clients must be
 * configured to trust it.
 */
export class LocalAuthority {
  /** PEM, for clients that should trust it. */
  readonly certificate: string;
  readonly #signer: CertificateSigner;

  constructor(pair: KeyPair) {
    this.certificate = pair.certificate;
    const key = createPrivateKey(pair.privateKey);
    const name = /CN=(.*)/.exec(new X509Certificate(pair.certificate).subject)![1]!;
    this.#signer = { name, key, publicKey: createPublicKey(key) };
  }

  /** Issues a certificate and key for names or addresses. */
  issue(hosts: readonly string[]): KeyPair {
    const { publicKey, privateKey } = newKeys();
    return {
      certificate: serverCertificate(this.#signer, publicKey, hosts, serverDays),
      privateKey: privateKey.export({ type: "pkcs8", format: "pem" }),
    };
  }
}

/** Opens the authority in the data folder, and creates it on first use. */
export function openLocalAuthority(dataDir: string): LocalAuthority {
  const files = authorityFiles(dataDir);
  if (existsSync(files.certificate)) {
    return new LocalAuthority({
      certificate: readFileSync(files.certificate, "utf8"),
      privateKey: readFileSync(files.key, "utf8"),
    });
  }
  const { publicKey, privateKey } = newKeys();
  // Clients would confuse two authorities with the same name.
  const name = `Selvedge local authority ${hostname().slice(0, 20)} ${randomBytes(3).toString("hex")}`;
  const pair = {
    certificate: authorityCertificate({ name, key: privateKey, publicKey }, authorityDays),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }),
  };
  mkdirSync(join(dataDir, "tls"), { recursive: true, mode: 0o700 });
  writeFileSync(files.key, pair.privateKey, { mode: 0o600 });
  writeFileSync(files.certificate, pair.certificate);
  return new LocalAuthority(pair);
}

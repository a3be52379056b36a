import { X509Certificate } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import { configOf } from "./config-options.ts";
import { authorityFiles } from "../edge/tls/certificates/authority-files.ts";
import { openLocalAuthority } from "../edge/tls/certificates/local-authority.ts";
import { print } from "./output.ts";

interface TlsOptions {
  config?: string;
  dataDir?: string;
}

/** `tls trust` and `tls issue`: explain how to trust the local authority, and issue certificates from it. */
export function registerTlsCommand(program: Command): void {
  const tls = program
    .command("tls")
    .description(
      "manage the local authority, which issues certificates for names without another certificate",
    );
  const trust = tls
    .command("trust")
    .description("explain how to make browsers and programs on this machine trust the local authority");
  addDataDir(trust)
    .option("--json", "print JSON")
    .action(({ json, ...options }: TlsOptions & { json?: boolean }) => {
      const dataDir = dataDirOf(options);
      const isNew = !existsSync(authorityFiles(dataDir).certificate);
      const { certificate: pem } = openLocalAuthority(dataDir);
      const file = resolve(authorityFiles(dataDir).certificate);
      const certificate = new X509Certificate(pem);
      if (json === true) {
        const { fingerprint256, subject, validTo } = certificate;
        print(
          JSON.stringify(
            { file, subject, fingerprint256, valid_to: new Date(validTo).toISOString() },
            null,
            2,
          ),
        );
      } else {
        print(explanation(file, certificate, isNew));
      }
    });

  const issue = tls
    .command("issue")
    .description("issue a certificate from the local authority, for an origin or another service")
    .argument("<host...>", "host names or IP addresses", collectHost);
  addDataDir(issue)
    .option("--out <folder>", "folder for HOST.pem and HOST.key", ".")
    .action((hosts: string[], { out, ...options }: TlsOptions & { out: string }) => {
      const pair = openLocalAuthority(dataDirOf(options)).issue(hosts);
      const name = join(out, hosts[0]!.replace("*", "_").replaceAll(":", "-"));
      writeFileSync(`${name}.key`, pair.privateKey, { mode: 0o600 });
      writeFileSync(`${name}.pem`, pair.certificate);
      print(`${name}.pem\n${name}.key`);
    });
  for (const command of [tls, trust, issue]) command.exitOverride();
}

const addDataDir = (command: Command): Command =>
  command
    .option("--data-dir <folder>", "folder with the authority, which is created if it is missing")
    .option("--config <file>", "configuration file with the folder");

const dataDirOf = (options: TlsOptions): string => configOf({ ...options }).config.dataDir;

function collectHost(host: string, hosts: string[] = []): string[] {
  if (!/^(\*\.)?[a-z0-9._:-]{1,253}$/i.test(host))
    throw new InvalidArgumentError("Expected a host name or an IP address.");
  return [...hosts, host.toLowerCase()];
}

function explanation(file: string, certificate: X509Certificate, isNew: boolean): string {
  const name = /CN=(.*)/.exec(certificate.subject)![1]!;
  const until = new Date(certificate.validTo).toISOString().slice(0, 10);
  return `${name}${isNew ? " (just created)" : ""}
  file         ${file}
  fingerprint  ${certificate.fingerprint256} (SHA-256)
  valid until  ${until}

The edge uses certificates from this authority for names of your zones without another certificate. No program trusts it yet.
Anyone with its key can impersonate any site to programs that trust it. Trust it only on development machines, and keep
${file.replace(/\.pem$/, ".key")} secret.

The trust store of this machine, which most programs use:
  Debian, Ubuntu    sudo cp ${file} /usr/local/share/ca-certificates/selvedge.crt && sudo update-ca-certificates
  Fedora, RHEL      sudo cp ${file} /etc/pki/ca-trust/source/anchors/selvedge.pem && sudo update-ca-trust
  macOS             sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${file}
  Windows           certutil -addstore -f ROOT ${file}

Programs with their own trust store:
  Firefox           Settings, Privacy & Security, Certificates, View Certificates, Authorities, Import
  Chrome on Linux   certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n selvedge -i ${file}
  Node              NODE_EXTRA_CA_CERTS=${file}
  Python requests   REQUESTS_CA_BUNDLE=${file}
  curl              curl --cacert ${file} ...
  Java              keytool -importcert -cacerts -alias selvedge -file ${file}

To stop trusting it, remove the copied file and run the same update, or remove the entry from the program's trust store.`;
}

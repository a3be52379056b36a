import { X509Certificate } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import { configOf } from "./config-options.ts";
import { authorityFiles, openLocalAuthority } from "../tls/local-authority.ts";

interface Place {
  config?: string;
  dataDir?: string;
}

/** `tls trust` and `tls issue`: the authority of this installation's own, and how to believe it. */
export function registerTlsCommand(program: Command): void {
  const tls = program
    .command("tls")
    .description("the local authority, for names without another certificate");
  const trust = tls
    .command("trust")
    .description(
      "explain how browsers and programs of this machine can be told to trust the local authority",
    );
  addDataDir(trust)
    .option("--json", "for machines")
    .action(({ json, ...place }: Place & { json?: boolean }) => {
      const dataDir = dataDirOf(place);
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
    .description("make a certificate of the local authority, for an origin or a service beside the edge")
    .argument("<host...>", "host names or IP addresses", collectHost);
  addDataDir(issue)
    .option("--out <folder>", "where HOST.pem and HOST.key are written", ".")
    .action((hosts: string[], { out, ...place }: Place & { out: string }) => {
      const pair = openLocalAuthority(dataDirOf(place)).issue(hosts);
      const name = join(out, hosts[0]!.replace("*", "_").replaceAll(":", "-"));
      writeFileSync(`${name}.key`, pair.privateKey, { mode: 0o600 });
      writeFileSync(`${name}.pem`, pair.certificate);
      print(`${name}.pem\n${name}.key`);
    });
  for (const command of [tls, trust, issue]) command.exitOverride();
}

const addDataDir = (command: Command): Command =>
  command
    .option("--data-dir <folder>", "folder with the authority, which is made there at first")
    .option("--config <file>", "configuration file that names the folder");

const dataDirOf = (place: Place): string => configOf({ ...place }).config.dataDir;

function collectHost(host: string, hosts: string[] = []): string[] {
  if (!/^(\*\.)?[a-z0-9._:-]{1,253}$/i.test(host))
    throw new InvalidArgumentError("Expected a host name or an IP address.");
  return [...hosts, host.toLowerCase()];
}

function explanation(file: string, certificate: X509Certificate, isNew: boolean): string {
  const name = /CN=(.*)/.exec(certificate.subject)![1]!;
  const until = new Date(certificate.validTo).toISOString().slice(0, 10);
  return `${name}${isNew ? " (made just now)" : ""}
  file         ${file}
  fingerprint  ${certificate.fingerprint256} (SHA-256)
  valid until  ${until}

The edge has certificates of this authority for names of your zones that have no other. Nobody trusts it yet. Whoever holds
its key can pretend to be any site to those who do: trust it on machines for development only, and keep
${file.replace(/\.pem$/, ".key")} to yourself.

This machine (what most programs ask):
  Debian, Ubuntu    sudo cp ${file} /usr/local/share/ca-certificates/selvedge.crt && sudo update-ca-certificates
  Fedora, RHEL      sudo cp ${file} /etc/pki/ca-trust/source/anchors/selvedge.pem && sudo update-ca-trust
  macOS             sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${file}
  Windows           certutil -addstore -f ROOT ${file}

Programs with a list of their own:
  Firefox           Settings, Privacy & Security, Certificates, View Certificates, Authorities, Import
  Chrome on Linux   certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n selvedge -i ${file}
  Node              NODE_EXTRA_CA_CERTS=${file}
  Python requests   REQUESTS_CA_BUNDLE=${file}
  curl              curl --cacert ${file} ...
  Java              keytool -importcert -cacerts -alias selvedge -file ${file}

Not any more: remove the file that you copied and run the same update, or remove the entry from the program's list.`;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

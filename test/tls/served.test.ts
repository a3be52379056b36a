import {
  createPrivateKey,
  generateKeyPairSync,
  randomBytes,
  X509Certificate,
  type KeyObject,
} from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openLocalAuthority, type LocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The certificate that a visitor gets: uploaded, from files, or of the local authority. */
let server: TestServer;
let authority: LocalAuthority;
let zoneId: string;
const folder = mkdtempSync(join(tmpdir(), "selvedge-served-"));
const name = "served.example";

beforeAll(async () => {
  authority = openLocalAuthority(folder);
  const pair = authority.issue([`*.${name}`]);
  writeFileSync(join(folder, "file.pem"), pair.certificate);
  writeFileSync(join(folder, "file.key"), pair.privateKey);
  server = await startTestServer({
    edgeTlsListen: "127.0.0.1:0",
    tlsCertificates: [`${join(folder, "file.pem")}:${join(folder, "file.key")}`],
  });
  zoneId = (await server.call("POST", "/zones", { name })).body.result.id as string;
});
afterAll(async () => {
  await server.close(0);
  rmSync(folder, { recursive: true });
});

/** The names in the certificate, and whether the uploaded authority has signed it. */
const served = (servername: string): Promise<{ names: string; isTheirs: boolean }> =>
  new Promise((resolve, reject) => {
    const port = Number(new URL(server.ready.edge_tls!).port);
    const ca = [authority.certificate, readFileSync(server.ready.tls_authority!, "utf8")];
    const socket = connect(
      { host: "127.0.0.1", port, servername, ca, checkServerIdentity: () => undefined },
      () => {
        const { subjectaltname: names = "", issuer } = socket.getPeerCertificate();
        socket.destroy();
        resolve({
          names,
          isTheirs: `CN=${String(issuer.CN)}` === new X509Certificate(authority.certificate).subject,
        });
      },
    );
    socket.on("error", reject);
  });
const upload = async (
  hosts: string[],
  type: "sni_custom" | "legacy_custom" = "sni_custom",
): Promise<string> => {
  const { certificate, privateKey: private_key } = authority.issue(hosts);
  const made = await server.call("POST", `/zones/${zoneId}/custom_certificates`, {
    certificate,
    private_key,
    type,
  });
  return made.body.result.id as string;
};

it("is the file's until the zone has one with the exact name; other names get the local authority's", async () => {
  expect(await served(`www.${name}`)).toEqual({ names: `DNS:*.${name}`, isTheirs: true });
  expect(await served(name)).toEqual({ names: `DNS:${name}`, isTheirs: false });
  const wild = await upload([`*.${name}`, name]);
  expect(await served(`www.${name}`)).toEqual({ names: `DNS:*.${name}, DNS:${name}`, isTheirs: true });
  expect(await served(name)).toEqual({ names: `DNS:*.${name}, DNS:${name}`, isTheirs: true });
  const own = await upload([`www.${name}`]);
  expect((await served(`www.${name}`)).names).toBe(`DNS:www.${name}`);
  await server.call("DELETE", `/zones/${zoneId}/custom_certificates/${own}`);
  await server.call("DELETE", `/zones/${zoneId}/custom_certificates/${wild}`);
  expect((await served(`www.${name}`)).names).toBe(`DNS:*.${name}`);
});

it("follows the type, then the priority", async () => {
  const first = await upload([`a.${name}`, `one.${name}`]);
  const second = await upload([`a.${name}`, `two.${name}`]);
  expect((await served(`a.${name}`)).names).toContain("two.");
  const certificates = [
    { id: first, priority: 9 },
    { id: second, priority: 1 },
  ];
  await server.call("PUT", `/zones/${zoneId}/custom_certificates/prioritize`, { certificates });
  expect((await served(`a.${name}`)).names).toContain("one.");
  await upload([`a.${name}`, `legacy.${name}`], "legacy_custom");
  expect((await served(`a.${name}`)).names).toContain("legacy.");
});

it("is not stored with a key that makes handshakes slow or weak, or with too many names", async () => {
  const odd = (bits: number): Uint8Array<ArrayBuffer> => {
    const bytes = new Uint8Array(randomBytes(bits / 8));
    bytes[0]! |= 0xc0;
    bytes[bytes.length - 1]! |= 1;
    return bytes;
  };
  const value = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  // Factors are not tested for being primes, so a caller makes a key of any size in no time.
  const rsa = (bits: number, exponent = Uint8Array.of(1, 0, 1)): KeyObject => {
    const [p, q] = [odd(bits / 2), odd(bits / 2)];
    const n = Buffer.from((value(p) * value(q)).toString(16).padStart(bits / 4, "0"), "hex");
    const [dp, dq, qi, d, e] = [odd(bits / 2), odd(bits / 2), odd(bits / 2), odd(bits - 8), exponent];
    const numbers = Object.entries({ n, e, d, p, q, dp, dq, qi });
    const texts = Object.fromEntries(
      numbers.map(([each, bytes]) => [each, Buffer.from(bytes).toString("base64url")]),
    );
    return createPrivateKey({ format: "jwk", key: { kty: "RSA", ...texts } });
  };
  const keys: [KeyObject, RegExp][] = [
    [rsa(8192), /rsa of 8192 bits/],
    [rsa(1024), /rsa of 1024 bits/],
    [rsa(2048, odd(2040)), /rsa of 2048 bits/],
    [generateKeyPairSync("ec", { namedCurve: "secp256k1" }).privateKey, /curve secp256k1/],
    [generateKeyPairSync("ed448").privateKey, /ed448/],
  ];
  const path = `/zones/${zoneId}/custom_certificates`;
  const { certificate } = authority.issue([`www.${name}`]);
  for (const [key, reason] of keys) {
    const private_key = key.export({ type: "pkcs8", format: "pem" });
    const { status, body } = await server.call("POST", path, { certificate, private_key });
    expect([status, body.errors[0]!.code]).toEqual([400, 1401]);
    expect(body.errors[0]!.message).toMatch(reason);
  }
  const uploadOf = async (hosts: string[]) => {
    const pair = authority.issue(hosts);
    return server.call("POST", path, { certificate: pair.certificate, private_key: pair.privateKey });
  };
  const many = await uploadOf(Array.from({ length: 1001 }, (_, i) => `${i}.${name}`));
  expect([many.status, many.body.errors[0]!.code]).toEqual([400, 1400]);
  const equal = await uploadOf([name, ...Array.from({ length: 1500 }, () => "x.example")]);
  expect(equal.body.result.hosts).toEqual([name, "x.example"]);
});

it("is removed with its zone", async () => {
  const id = (await server.call("POST", "/zones", { name: "short.example" })).body.result.id as string;
  const { certificate, privateKey: private_key } = authority.issue(["www.short.example"]);
  await server.call("POST", `/zones/${id}/custom_certificates`, { certificate, private_key });
  expect((await served("www.short.example")).isTheirs).toBe(true);
  await server.call("DELETE", `/zones/${id}`);
  expect(await served("www.short.example")).toEqual({ names: "DNS:localhost", isTheirs: false });
});

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { dnsPort } from "./ask.ts";
import { isMissing } from "./nsd.ts";

const run = promisify(execFile);
const zone = "compliant.example";
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ colo: "LAX" });
  await server.client.zones.create({ account: { id: server.ready.account_id }, name: zone });
});
afterAll(() => server.close(1000));

/** The parts of dig's output. */
async function dig(
  ...options: string[]
): Promise<{ text: string; status: string; flags: string; opt: string; soa: number }> {
  const { stdout: text } = await run("dig", [
    "@127.0.0.1",
    "-p",
    String(dnsPort(server)),
    "+norec",
    "+tries=1",
    ...options,
  ]);
  return {
    text,
    status: /status: (\w+)/.exec(text)?.[1] ?? "none",
    flags: /^;; flags: ([^;]*);/m.exec(text)?.[1] ?? "none",
    opt: /^; EDNS: (.*)$/m.exec(text)?.[1] ?? "none",
    soa: text.match(/^\S+\s+\d+\s+IN\s+SOA\s/gm)?.length ?? 0,
  };
}

/** The queries of ISC's survey of EDNS compliance, with the accepted responses. */
describe.skipIf(isMissing("dig"))("a server is compliant", () => {
  const edns = "version: 0, flags:; udp: 1232";
  it.each<[string, string[], Partial<Awaited<ReturnType<typeof dig>>>]>([
    ["plain", ["+noedns", "+noad", "soa", zone], { status: "NOERROR", flags: "qr aa", opt: "none", soa: 1 }],
    [
      "over TCP",
      ["+noedns", "+noad", "+tcp", "soa", zone],
      { status: "NOERROR", flags: "qr aa", opt: "none", soa: 1 },
    ],
    ["with AA", ["+noedns", "+noad", "+aaflag", "soa", zone], { status: "NOERROR", flags: "qr aa", soa: 1 }],
    ["with TC", ["+noedns", "+noad", "+tcflag", "soa", zone], { status: "NOERROR", flags: "qr aa", soa: 1 }],
    ["with RA", ["+noedns", "+noad", "+raflag", "soa", zone], { status: "NOERROR", flags: "qr aa", soa: 1 }],
    ["with RD", ["+noedns", "+noad", "+rec", "soa", zone], { status: "NOERROR", flags: "qr aa rd", soa: 1 }],
    ["with AD", ["+noedns", "+adflag", "soa", zone], { status: "NOERROR", flags: "qr aa", soa: 1 }],
    [
      "with CD",
      ["+noedns", "+noad", "+cdflag", "soa", zone],
      { status: "NOERROR", flags: "qr aa cd", soa: 1 },
    ],
    ["with Z", ["+noedns", "+noad", "+zflag", "soa", zone], { status: "NOERROR", flags: "qr aa", soa: 1 }],
    [
      "an unknown opcode",
      ["+noedns", "+noad", "+opcode=15", "+header-only"],
      { status: "NOTIMP", flags: "qr" },
    ],
    ["an unknown type", ["+noedns", "+noad", "type666", zone], { status: "NOERROR", flags: "qr aa", soa: 1 }],
    [
      "EDNS",
      ["+edns=0", "+nocookie", "+noad", "soa", zone],
      { status: "NOERROR", flags: "qr aa", opt: edns, soa: 1 },
    ],
    [
      "EDNS over TCP",
      ["+edns=0", "+nocookie", "+tcp", "soa", zone],
      { status: "NOERROR", opt: edns, soa: 1 },
    ],
    ["EDNS 1", ["+edns=1", "+noednsneg", "+nocookie", "soa", zone], { status: "BADVERS", opt: edns, soa: 0 }],
    [
      "an option",
      ["+edns=0", "+nocookie", "+ednsopt=100", "soa", zone],
      { status: "NOERROR", opt: edns, soa: 1 },
    ],
    [
      "EDNS 1 with an option",
      ["+edns=1", "+noednsneg", "+nocookie", "+ednsopt=100", "soa", zone],
      { status: "BADVERS", opt: edns, soa: 0 },
    ],
    [
      "a flag",
      ["+edns=0", "+nocookie", "+ednsflags=0x40", "soa", zone],
      { status: "NOERROR", opt: edns, soa: 1 },
    ],
    [
      "EDNS 1 with a flag",
      ["+edns=1", "+noednsneg", "+nocookie", "+ednsflags=0x40", "soa", zone],
      { status: "BADVERS", opt: edns, soa: 0 },
    ],
    [
      "DO",
      ["+edns=0", "+nocookie", "+dnssec", "soa", zone],
      { status: "NOERROR", opt: "version: 0, flags: do; udp: 1232", soa: 1 },
    ],
    [
      "512 bytes",
      ["+edns=0", "+nocookie", "+bufsize=512", "soa", zone],
      { status: "NOERROR", opt: edns, soa: 1 },
    ],
  ])("%s", async (_what, options, expected) => {
    expect(await dig(...options)).toMatchObject(expected);
  });

  it("several options, of which it returns the known ones", async () => {
    const options = ["+edns=0", "+nsid", "+expire", "+cookie", "+subnet=0.0.0.0/0", "+dnssec", "soa", zone];
    const { text, status, soa } = await dig(...options);
    expect([status, soa]).toEqual(["NOERROR", 1]);
    expect(text).toMatch(/NSID: .*lax/);
    expect(text).toMatch(/COOKIE: [0-9a-f]{48} \(good\)/);
    expect(text).not.toMatch(/CLIENT-SUBNET|EXPIRE/);
  });
});

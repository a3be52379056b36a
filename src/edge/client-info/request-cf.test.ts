import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { cipherName } from "../../platform/access-log/cipher-name.ts";
import { scoreBot } from "./bot-score.ts";
import type { GeoSource } from "./geo-source.ts";
import { RequestCf } from "./request-cf.ts";
import { TrustedProxies } from "./trusted-proxies.ts";

const geo: GeoSource = {
  lookUp: (address): Record<string, string> =>
    address === "192.0.2.1" ? { country: "DE", isEUCountry: "1", subdivision2Code: "X" } : {},
  reload: async () => {},
  close: () => {},
};
const request = (headers: Record<string, string> = {}, more: object = {}): IncomingMessage =>
  ({
    headers,
    httpVersion: "1.1",
    url: "/",
    socket: { localAddress: "::ffff:127.0.0.1", localPort: 8080 },
    ...more,
  }) as never;
const make = (proxies: readonly string[] = [], score = () => undefined as never): RequestCf =>
  new RequestCf({ colo: "TST", geo, proxies: new TrustedProxies(proxies), score });

const shown = (cf: RequestCf, of: IncomingMessage, peer: string): Record<string, unknown> =>
  JSON.parse(cf.forScripts(of, peer, undefined)) as Record<string, unknown>;

describe("request.cf", () => {
  it("exists without any data", () => {
    expect(shown(make(), request(), "10.0.0.1")).toEqual({
      colo: "TST",
      country: null,
      httpProtocol: "HTTP/1.1",
      tlsVersion: "",
      tlsCipher: "",
      requestPriority: "",
      clientAcceptEncoding: "",
    });
  });

  it("has more properties for rules than for scripts", () => {
    const cf = make();
    expect(shown(cf, request(), "192.0.2.1")).not.toHaveProperty("subdivision2Code");
    expect(cf.forRules(request(), "192.0.2.1", undefined)).toMatchObject({
      country: "DE",
      subdivision2Code: "X",
      edgeServerIp: "127.0.0.1",
      edgeServerPort: 8080,
    });
  });

  it("handles a closed TLS connection, which has no cipher", () => {
    const socket = { encrypted: true, getProtocol: () => null, getCipher: () => null };
    expect(shown(make(), request({}, { socket }), "")).toMatchObject({ tlsVersion: "", tlsCipher: "" });
  });

  it("reads TLS and the protocol from the connection, and the priority from the request", () => {
    const socket = {
      encrypted: true,
      getProtocol: () => "TLSv1.3",
      getCipher: () => ({ name: "TLS_AES_128_GCM_SHA256" }),
    };
    const headers = { priority: "u=1, i", "accept-encoding": "br" };
    expect(shown(make(), request(headers, { httpVersion: "2.0", socket }), "")).toMatchObject({
      httpProtocol: "HTTP/2",
      tlsVersion: "TLSv1.3",
      tlsCipher: "AEAD-AES128-GCM-SHA256",
      requestPriority: "u=1, i",
      clientAcceptEncoding: "br",
    });
  });

  it.each([
    ["TLS_AES_256_GCM_SHA384", "AEAD-AES256-GCM-SHA384"],
    ["TLS_CHACHA20_POLY1305_SHA256", "AEAD-CHACHA20-POLY1305-SHA256"],
    ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
  ])("names the cipher %s %s", (name, shown) => {
    expect(cipherName(name)).toBe(shown);
  });
});

describe("trusted proxies", () => {
  const proxies = ["10.0.0.0/8", "192.0.2.99", "2001:db8:1::/48"];

  it.each([
    ["a header of the visitor", "203.0.113.9", "192.0.2.1", "203.0.113.9"],
    ["a proxy", "10.1.1.1", "192.0.2.1", "192.0.2.1"],
    ["a chain of proxies", "10.1.1.1", "6.6.6.6, 192.0.2.1, 192.0.2.99, 10.9.9.9", "192.0.2.1"],
    ["a proxy without the header", "10.1.1.1", undefined, "10.1.1.1"],
    ["nonsense", "10.1.1.1", "192.0.2.1, unknown", "10.1.1.1"],
    ["nonsense behind an address", "10.1.1.1", "x, 192.0.2.99", "192.0.2.99"],
    ["a proxy over IPv6", "2001:db8:1::5", "2001:db8:2::1", "2001:db8:2::1"],
  ])("finds the client address for %s", (_what, peer, header, client) => {
    const headers = header === undefined ? {} : { "x-forwarded-for": header };
    expect(make(proxies).clientAddress(request(headers as Record<string, string>), peer)).toBe(client);
  });

  it("combines properties of the request with the node's own data", () => {
    const cf = { country: "SE", city: "Malmö", asn: 64_500, tlsVersion: "TLSv1.2" };
    const headers = {
      "selvedge-cf": Buffer.from(JSON.stringify(cf)).toString("latin1"),
      "x-forwarded-for": "192.0.2.1",
    };
    expect(shown(make(proxies), request(headers), "10.0.0.1")).toMatchObject({
      ...cf,
      isEUCountry: "1",
      colo: "TST",
    });
    expect(shown(make(proxies), request(headers), "203.0.113.1")).toMatchObject({
      country: null,
      tlsVersion: "",
    });
    expect(shown(make(), request(headers), "10.0.0.1")).toMatchObject({ country: null });
  });

  it("belongs to the request, not to an earlier one on the connection", () => {
    const cf = make(proxies);
    const socket = {};
    const ask = (headers: Record<string, string>, peer = "203.0.113.1"): Record<string, unknown> =>
      shown(cf, request(headers, { socket }), peer);
    expect(ask({ "accept-encoding": "br" })["clientAcceptEncoding"]).toBe("br");
    expect(ask({ "accept-encoding": "br" })["clientAcceptEncoding"]).toBe("br");
    expect(ask({ "accept-encoding": "gzip" })["clientAcceptEncoding"]).toBe("gzip");
    expect(ask({ priority: "u=1" })["requestPriority"]).toBe("u=1");
    expect(ask({ "selvedge-cf": '{"country":"SE"}' }, "10.0.0.1")["country"]).toBe("SE");
    expect(ask({ "selvedge-cf": '{"country":"NO"}' }, "10.0.0.1")["country"]).toBe("NO");
  });

  it("sets isEUCountry to false when a proxy sets a country outside the EU", () => {
    const headers = { "selvedge-cf": '{"country":"US"}', "x-forwarded-for": "192.0.2.1" };
    expect(shown(make(proxies), request(headers), "10.0.0.1")["isEUCountry"]).toBeUndefined();
  });

  it.each(["no json", "[1]", '{"clientIp":"1.2.3.4"}', '{"__proto__":1}'])("refuses %s", (header) => {
    const bad = request({ "selvedge-cf": header });
    expect(() => shown(make(proxies), bad, "10.0.0.1")).toThrow(/selvedge-cf/);
  });

  it.each(["10.0.0.0/33", "10.0.0.0/", "example.com", "::/129", "10.0.0.0/-1", ""])(
    "refuses the network %j",
    (network) => {
      expect(() => new TrustedProxies([network])).toThrow(/--trusted-proxies but received/);
    },
  );
});

describe("bot score", () => {
  const browser = {
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    accept: "text/html",
    "accept-language": "de",
    "accept-encoding": "gzip",
  };
  const isKnownBot = (userAgent: string): boolean => userAgent.includes("curl");
  const score = (headers: Record<string, string>): number => scoreBot(headers, "/", isKnownBot).score;

  it("is high for a browser, and low for a program", () => {
    expect(score(browser)).toBe(99);
    expect(score({ ...browser, "user-agent": "curl/8.0" })).toBe(1);
    expect(score({ ...browser, "user-agent": "" })).toBe(2);
    expect(score({ "user-agent": browser["user-agent"] })).toBe(24);
    expect(score({ "user-agent": browser["user-agent"], accept: "*/*", "accept-encoding": "gzip" })).toBe(59);
  });

  it.each([
    ["/a/b.JPG?x=.html", true],
    ["/app.js", true],
    ["/", false],
    ["/a.html", false],
    ["/a.b/c", false],
    ["/x?file=a.png", false],
  ])("treats %s as a static file: %s", (path, expected) => {
    const bot = scoreBot(browser, path, isKnownBot);
    expect([bot.staticResource, bot.static_resource]).toEqual([expected, expected]);
  });

  it("has both spellings, and marks no bot as verified", () => {
    expect(scoreBot(browser, "/", isKnownBot)).toMatchObject({ verifiedBot: false, verified_bot: false });
  });
});

import type { RequestDescription } from "../src/rules/language.ts";

const hosts = ["www.example.com", "shop.example.com", "api.example.net", "static.example.org"];
const paths = [
  "/api/v1/users/42",
  "/api/v2/users/7/orders",
  "/",
  "/index.html",
  "/assets/app.3f2a.js",
  "/login?next=%2F",
];
const agents = [
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
  "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://www.example.com/bot.html)",
  "curl/8.7.1",
];
const accepts = ["text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "Application/JSON", "*/*", "TEXT/HTML"];
const cookies = ["session=0123456789abcdef; theme=dark", "theme=light; consent=yes", ""];
const countries = ["DE", "US", "FR", "BR", "JP", "IN", "XX"];
const addresses = [
  "203.0.113.9",
  "8.8.8.8",
  "2606:4700::6810:84e5",
  "10.20.30.40",
  "2001:db8::1",
  "93.184.216.34",
];

/** 256 requests, always the same. */
export const benchRequests: readonly RequestDescription[] = Array.from({ length: 256 }, (_, i) => {
  const cookie = cookies[i % cookies.length]!;
  return {
    method: i % 5 === 0 ? "POST" : "GET",
    url: paths[(i * 7) % paths.length]!,
    headers: [
      "Host",
      hosts[(i * 3) % hosts.length]!,
      "User-Agent",
      agents[(i >> 2) % agents.length]!,
      "Accept",
      accepts[(i >> 1) % accepts.length]!,
      "Accept-Encoding",
      "gzip, br",
      "Accept-Language",
      "de-DE,de;q=0.9,en;q=0.8",
      ...(cookie === "" ? [] : ["Cookie", cookie]),
    ],
    tls: i % 4 !== 0,
    ip: addresses[(i * 5) % addresses.length]!,
    httpVersion: "HTTP/1.1",
    timestampMs: 1_700_000_000_000 + i,
    cf: { country: countries[i % countries.length]!, asn: [13_335, 3320, 64_500, 16_509][i % 4]! },
  };
});

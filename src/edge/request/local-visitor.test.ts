import { expect, it } from "vitest";
import type { EdgeRequest } from "./handlers.ts";
import { isLocalVisitor } from "./local-visitor.ts";

const edgeRequest = (
  address: string,
  headers: Record<string, string> = {},
  more: Partial<EdgeRequest> & { httpVersion?: string } = {},
): EdgeRequest => {
  const { httpVersion = "1.1", ...rest } = more;
  const request = { socket: { remoteAddress: address }, headers, httpVersion };
  return { request, clientAddress: address, via: undefined, ...rest } as unknown as EdgeRequest;
};

it.each(["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])(
  "a visitor from %s is on this machine",
  (address) => {
    expect(isLocalVisitor(edgeRequest(address, { host: "a.example", accept: "*/*" }))).toBe(true);
  },
);

it.each(["192.0.2.1", "10.0.0.1", "::ffff:192.0.2.1", "2001:db8::1", "", "127.evil", "100::1"])(
  "a visitor from %j is not on this machine",
  (address) => {
    expect(isLocalVisitor(edgeRequest(address))).toBe(false);
  },
);

it.each([
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded",
  "x-real-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "cdn-loop",
])("a visitor whose request has the header %s does not count as local", (name) => {
  expect(isLocalVisitor(edgeRequest("127.0.0.1", { [name]: "127.0.0.1" }))).toBe(false);
});

it("requests of trusted proxies, of scripts, and of proxies with HTTP/1.0 do not count as local", () => {
  expect(isLocalVisitor(edgeRequest("127.0.0.1", {}, { clientAddress: "192.0.2.1" }))).toBe(false);
  expect(isLocalVisitor(edgeRequest("192.0.2.1", {}, { clientAddress: "127.0.0.1" }))).toBe(false);
  expect(isLocalVisitor(edgeRequest("127.0.0.1", {}, { via: { hops: 1 } as never }))).toBe(false);
  expect(isLocalVisitor(edgeRequest("127.0.0.1", {}, { httpVersion: "1.0" }))).toBe(false);
});

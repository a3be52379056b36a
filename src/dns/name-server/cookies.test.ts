import { describe, expect, it } from "vitest";
import { Cookies } from "./cookies.ts";

const secret = Buffer.from("e5e973e5a6b2a43f48e7dc849e37bfcf", "hex");
const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");

/** The test vectors of RFC 9018, appendix A. */
describe("a cookie", () => {
  const cookies = new Cookies(secret);
  const client = bytes("2464c4abcf10c957");
  const whole = bytes("2464c4abcf10c957 010000005cf79f111f8130c3eee29480");
  const madeMs = 1_559_731_985_000;

  it("depends on the client's part, its address and the time", () => {
    expect(cookies.check(client, "198.51.100.100", madeMs)).toEqual({ isValid: false, answer: whole });
  });

  it("is renewed after half an hour", () => {
    const { isValid, answer } = cookies.check(whole, "198.51.100.100", madeMs + 1_800_000);
    expect([isValid, answer.equals(whole)]).toEqual([true, false]);
    expect(cookies.check(answer, "198.51.100.100", madeMs + 1_800_000).isValid).toBe(true);
  });

  it("is valid with another server's reserved bytes", () => {
    const cookie = bytes("fc93fc62807ddb86 01abcdef5cf78f71a314227b6679ebf5");
    expect(cookies.check(cookie, "203.0.113.203", 1_559_728_000_000).isValid).toBe(true);
  });

  it("is valid for the same address, for an hour", () => {
    expect(cookies.check(whole, "198.51.100.100", madeMs + 60_000)).toEqual({ isValid: true, answer: whole });
    expect(cookies.check(whole, "198.51.100.101", madeMs).isValid).toBe(false);
    expect(cookies.check(whole, "198.51.100.100", madeMs + 3_601_000).isValid).toBe(false);
  });

  it("works for IPv6 too", () => {
    const v6 = new Cookies(bytes("445536bcd2513298075a5d379663c962"));
    const answer = bytes("22681ab97d52c298 010000005cf7c609a6bb79d16625507a");
    expect(
      v6.check(answer.subarray(0, 8), "2001:db8:220:1:59de:d0f4:8769:82b8", 1_559_741_961_000).answer,
    ).toEqual(answer);
  });
});

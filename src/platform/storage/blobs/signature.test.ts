import { expect, it } from "vitest";
import { sha256, RequestSigner, type UnsignedRequest } from "./signature.ts";

/** Requests and signatures that AWS publishes in "Signature Calculations for the Authorization Header". */
const credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const now = new Date("2013-05-24T00:00:00Z");
const host = "examplebucket.s3.amazonaws.com";
const request = (change: Partial<UnsignedRequest>): UnsignedRequest => ({
  method: "GET",
  path: "/",
  query: {},
  payloadSha256: sha256(""),
  ...change,
  headers: { host, ...change.headers },
});

it.each([
  [
    "a read of a range",
    request({ path: "/test.txt", headers: { range: "bytes=0-9" } }),
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  ],
  [
    "a write whose path needs encoding",
    request({
      method: "PUT",
      path: "/test%24file.text",
      headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
      payloadSha256: sha256("Welcome to Amazon S3."),
    }),
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  ],
  [
    "a query without a value",
    request({ query: { lifecycle: "" } }),
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  ],
  [
    "a query with several values",
    request({ query: { prefix: "J", "max-keys": "2" } }),
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
])("signs %s as AWS's example does", (_title, unsigned, signature) => {
  const { authorization } = new RequestSigner(credentials, "us-east-1").sign(unsigned, now);
  expect(authorization).toMatch(new RegExp(`,Signature=${signature}$`));
});

it("signs the token of temporary credentials, and derives a key for each day", () => {
  const signer = new RequestSigner({ ...credentials, sessionToken: "a token" }, "eu-west-1");
  const first = signer.sign(request({}), now);
  expect(first["x-amz-security-token"]).toBe("a token");
  expect(first["authorization"]).toContain(
    "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,",
  );
  const later = signer.sign(request({}), new Date("2013-05-25T00:00:00Z"));
  expect(later["authorization"]).toContain("/20130525/eu-west-1/s3/aws4_request,");
  expect(signer.sign(request({}), now)).toEqual(first);
});

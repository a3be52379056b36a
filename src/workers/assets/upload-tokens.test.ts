import { afterEach, expect, it, vi } from "vitest";
import { assetLimits } from "./limits.ts";
import { UploadTokens } from "./upload-tokens.ts";

const tokens = new UploadTokens("secret of the installation");
const claims = {
  accountId: "account",
  namespaceId: undefined,
  scriptName: "site",
  scriptId: undefined,
  manifestId: "manifest",
};

afterEach(() => void vi.useRealTimers());

it("a token names its manifest, script and account", async () => {
  expect(await tokens.verify("asset-upload", await tokens.sign("asset-upload", claims))).toEqual(claims);
  const customer = { ...claims, namespaceId: "namespace", scriptId: "1" };
  expect(await tokens.verify("asset-completion", await tokens.sign("asset-completion", customer))).toEqual(
    customer,
  );
});

it("a token is valid for its own step only", async () => {
  await expect(
    tokens.verify("asset-completion", await tokens.sign("asset-upload", claims)),
  ).rejects.toMatchObject({ kind: "assets.completion" });
  await expect(
    tokens.verify("asset-upload", await tokens.sign("asset-completion", claims)),
  ).rejects.toMatchObject({ kind: "assets.badToken" });
});

it.each([
  ["asset-upload", assetLimits.sessionSeconds],
  ["asset-completion", assetLimits.completionSeconds],
] as const)("%s expires", async (purpose, seconds) => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const token = await tokens.sign(purpose, claims);
  vi.setSystemTime(Date.now() + (seconds - 5) * 1000);
  await expect(tokens.verify(purpose, token)).resolves.toEqual(claims);
  vi.setSystemTime(Date.now() + 10_000);
  await expect(tokens.verify(purpose, token)).rejects.toThrow(/has expired/);
});

it("a token cannot be made or changed by others", async () => {
  const token = await tokens.sign("asset-upload", claims);
  const [head, payload, signature] = token.split(".") as [string, string, string];
  const altered = Buffer.from(
    JSON.stringify({ ...(JSON.parse(Buffer.from(payload, "base64url").toString()) as object), account: "b" }),
  ).toString("base64url");
  const unsigned = Buffer.from('{"alg":"none","typ":"JWT"}').toString("base64url");
  for (const forged of [
    await new UploadTokens("another").sign("asset-upload", claims),
    `${head}.${altered}.${signature}`,
    `${unsigned}.${payload}.`,
    `${head}.${payload}`,
    "",
  ])
    await expect(tokens.verify("asset-upload", forged)).rejects.toThrow(/was not issued for this step/);
});

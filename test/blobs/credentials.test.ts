import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { contentOf } from "../../src/platform/storage/blobs/content.ts";
import { environmentCredentials } from "../../src/platform/storage/blobs/credentials.ts";
import { S3Store } from "../../src/platform/storage/blobs/s3-store.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { startS3, type S3Double } from "../helpers/s3.ts";

/** Credentials that change while a node runs. */
let s3: S3Double;
let store: S3Store;
const file = join(temporaryFolder(), "credentials");
const content = contentOf(Buffer.from("content"));
const pair = (n: number) => ({ accessKeyId: `AK${n}`, secretAccessKey: `secret ${n}`.replace(" ", "/") });

beforeEach(async () => {
  s3 = await startS3();
});
afterEach(async () => {
  await store.close();
  await s3.stop();
});
const storeWith = (env: NodeJS.ProcessEnv): S3Store =>
  new S3Store({
    endpoint: s3.endpoint,
    bucket: "bucket",
    isInPath: true,
    region: "us-east-1",
    prefix: "",
    credentials: environmentCredentials(env)!,
  });
const writeFile = (n: number, token = ""): void =>
  writeFileSync(
    file,
    `[default]\naws_access_key_id = AKOTHER\naws_secret_access_key = x\n\n[ node ]\n` +
      `aws_access_key_id=${pair(n).accessKeyId}\naws_secret_access_key = ${pair(n).secretAccessKey}\n${token}`,
  );

it("of a shared file are read again when the store refuses them, and at a reload", async () => {
  store = storeWith({ AWS_SHARED_CREDENTIALS_FILE: file, AWS_PROFILE: "node" });
  writeFile(1);
  s3.credentials = pair(1);
  await store.put("k", content);
  s3.credentials = pair(2);
  await expect(store.put("k", content)).rejects.toThrow("403 InvalidAccessKeyId");
  writeFile(2);
  await store.put("k", content);
  s3.credentials = { ...pair(2), sessionToken: "next" };
  writeFile(2, "aws_session_token = next\n");
  await store.put("k", content);
  // The answer to a HEAD has no code.
  writeFile(2);
  s3.credentials = pair(2);
  expect(await store.head("k")).toBeDefined();
  writeFile(3);
  s3.credentials = pair(3);
  await store.renew();
  const calls = s3.calls.length;
  await store.put("k", content);
  expect(s3.calls).toHaveLength(calls + 1);
});

it("of a container's server are asked for before they expire, and kept while it is away", async () => {
  let answers = 0;
  const server = createServer((request, response) => {
    if (request.headers.authorization !== "the token") return void response.writeHead(401).end();
    const { accessKeyId, secretAccessKey } = pair(++answers);
    const Expiration = new Date(Date.now() + (answers === 1 ? 60_000 : 3_600_000)).toISOString();
    const body = { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: "t", Expiration };
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  store = storeWith({
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${port}/credentials`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: "the token",
  });
  s3.credentials = { ...pair(1), sessionToken: "t" };
  await store.put("k", content);
  s3.credentials = { ...pair(2), sessionToken: "t" };
  await store.put("k", content); // the first ones end within five minutes
  await store.put("k", content);
  expect([answers, s3.calls.length]).toEqual([2, 3]);
  await new Promise((resolve) => server.close(resolve));
  await store.put("k", content);
});

it("of a container's server are not asked for over plain HTTP, except at the addresses of AWS", async () => {
  store = storeWith({ AWS_CONTAINER_CREDENTIALS_FULL_URI: "https://credentials.example/here" });
  const variable = (url: string) => environmentCredentials({ AWS_CONTAINER_CREDENTIALS_FULL_URI: url });
  for (const host of ["localhost", "127.0.0.1", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"])
    expect(variable(`http://${host}:80/v1`)).toBeDefined();
  expect(environmentCredentials({ AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: "/v2/c?id=1" })).toBeDefined();
  for (const wrong of ["http://credentials.example/", "http://169.254.169.254/latest", "file:///etc/x", "x"])
    expect(() => variable(wrong)).toThrow(
      `Expected an https URL, or an http URL of a container's own server`,
    );
});

it("are those of the variables before all others, and none without any", async () => {
  expect(environmentCredentials({})).toBeUndefined();
  const { accessKeyId, secretAccessKey } = pair(7);
  s3.credentials = pair(7);
  store = storeWith({
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SHARED_CREDENTIALS_FILE: "/no/such/file",
  });
  await store.put("k", content);
});

import { createHash } from "node:crypto";
import type { Ready } from "../../src/ready.ts";
import { api, benchToken } from "./child.ts";

const script = "bench-site";

/** A site of one text for each size in bytes, at `/SIZE.txt`; resolves with its host. */
export async function deploySite(ready: Ready, sizes: readonly number[]): Promise<string> {
  const account = `/accounts/${ready.account_id}`;
  const files = sizes.map((bytes) => {
    const content = Buffer.alloc(bytes, "x");
    return {
      path: `/${bytes}.txt`,
      content,
      hash: createHash("sha256").update(content).digest("hex").slice(0, 32),
    };
  });
  const manifest = Object.fromEntries(
    files.map(({ path, content, hash }) => [path, { hash, size: content.length }]),
  );
  const session = await api<{ jwt: string }>(
    ready,
    "POST",
    `${account}/workers/scripts/${script}/assets-upload-session`,
    { manifest },
  );
  const form = new FormData();
  for (const { hash, content } of files)
    form.append(hash, new File([content.toString("base64")], hash, { type: "text/plain; charset=utf-8" }));
  const sent = await send(ready, "POST", `${account}/workers/assets/upload?base64=true`, session.jwt, form);
  const upload = new FormData();
  upload.set("metadata", JSON.stringify({ compatibility_date: "2026-01-01", assets: { jwt: sent.jwt } }));
  await send(ready, "PUT", `${account}/workers/scripts/${script}`, benchToken, upload);
  const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
  return `${script}.${subdomain}.workers.localhost`;
}

async function send(
  ready: Ready,
  method: string,
  path: string,
  token: string,
  body: FormData,
): Promise<{ jwt: string }> {
  const response = await fetch(`${ready.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    body,
  });
  const envelope = (await response.json()) as { success: boolean; result: { jwt: string }; errors: unknown };
  if (!envelope.success) throw new Error(JSON.stringify(envelope.errors));
  return envelope.result;
}

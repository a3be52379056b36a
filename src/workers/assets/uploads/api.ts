import type { Readable } from "node:stream";
import { z } from "zod";
import { readBytes } from "../../../control/api/body.ts";
import { success } from "../../../control/api/envelope.ts";
import { apiErrors } from "../../../control/api/errors.ts";
import { streamParts, type PartHead } from "../../../control/api/multipart.ts";
import { assetErrorCodes } from "./api-errors.ts";
import { operationsFor, type Call } from "../../../control/api/operation.ts";
import { readManifest } from "../asset.ts";
import { assetErrors } from "../errors.ts";
import { assetLimits } from "../limits.ts";
import type { UploadClaims } from "../upload-tokens.ts";
import type { Assets } from "../assets.ts";
import type { Scripts } from "../../scripts/scripts.ts";

/** The services that these operations use. */
interface Services {
  assets: Assets;
  scripts: Scripts;
}

const { operation, rawOperation } = operationsFor<Services>(assetErrorCodes);

export const SessionInputSchema = z.strictObject({
  manifest: z.record(z.string(), z.strictObject({ hash: z.string(), size: z.int().min(0) })),
});
export const SessionSchema = z
  .object({ jwt: z.string(), buckets: z.array(z.array(z.string())) })
  .meta({ id: "AssetUploadSession" });

export const sessionBodyBytesMax = 16 * 1024 * 1024;
/** A request may contain several buckets, because clients group files as they like. */
const uploadBodyBytesMax = 128 * 1024 * 1024;
const uploadPartsMax = 2000;
const edit = { scope: "account", permission: "workers_scripts:edit" } as const;

export const assetOperations = [
  operation({
    id: "script_assets_session_create",
    audit: "none",
    method: "POST",
    path: "/accounts/{account_id}/workers/scripts/{script_name}/assets-upload-session",
    summary: "Begin an upload of a script's static assets",
    access: edit,
    body: SessionInputSchema,
    bodyBytesMax: sessionBodyBytesMax,
    result: SessionSchema,
    async handle({ account, params, body, services }) {
      const scriptName = params["script_name"]!;
      const scriptId = services.scripts.find({ accountId: account.id }, scriptName)?.id;
      return services.assets.createSession(
        { accountId: account.id, scriptName, scriptId },
        readManifest(body.manifest),
      );
    },
  }),
  rawOperation({
    id: "assets_upload",
    audit: "none",
    method: "POST",
    path: "/accounts/{account_id}/edge/assets/upload",
    summary: "Upload static assets, one base64 part for each, named by its hash",
    access: { scope: "own" },
    query: z.object({ base64: z.string().optional() }),
    bodyKind: "own",
    async handle(call) {
      const claims = await claimsOf(call);
      if (call.query.base64 !== "true") throw assetErrors.encoding(call.query.base64);
      const limits = {
        bodyBytesMax: uploadBodyBytesMax,
        partBytesMax: uploadBodyBytesMax,
        partsMax: uploadPartsMax,
      };
      const jwt = await call.services.assets.upload(claims, async (keep) =>
        streamParts(call.incoming, limits, async (head, stream) => {
          const expected = await call.services.assets.expectedBytes(claims, head.name);
          const bytes = decode(head.name, await collect(head.name, stream, expected));
          await keep({ hash: head.name, contentType: contentTypeOf(head), bytes });
        }),
      );
      return answer(jwt, call);
    },
  }),
  rawOperation({
    id: "asset_upload",
    audit: "none",
    method: "POST",
    path: "/accounts/{account_id}/edge/assets/upload/{asset_hash}",
    summary: "Upload one static asset as it is",
    access: { scope: "own" },
    bodyKind: "own",
    async handle(call) {
      const claims = await claimsOf(call);
      const hash = call.params["asset_hash"]!;
      await call.services.assets.expectedBytes(claims, hash);
      const jwt = await call.services.assets.upload(claims, async (keep) => {
        const bytes = await readBytes(call.incoming, assetLimits.fileBytes);
        await keep({ hash, contentType: typeOf(call.incoming.headers["content-type"]), bytes });
      });
      return answer(jwt, call);
    },
  }),
];

/** Verifies the session's token, which is the only authorization of these calls. */
async function claimsOf(call: Call<unknown, unknown, Services>): Promise<UploadClaims> {
  const token = /^Bearer +(\S+)$/i.exec(call.incoming.headers.authorization ?? "")?.[1];
  if (token === undefined) throw apiErrors.noCredentials();
  const claims = await call.services.assets.verifyUpload(token);
  if (claims.accountId !== call.account.id) throw assetErrors.badToken("it is for another account");
  return claims;
}

function answer(jwt: string | undefined, { requestId }: { requestId: string }): Response {
  return new Response(JSON.stringify(success(jwt === undefined ? {} : { jwt })), {
    status: jwt === undefined ? 202 : 201,
    headers: { "content-type": "application/json", "x-request-id": requestId },
  });
}

async function collect(hash: string, stream: Readable, decodedBytes: number): Promise<string> {
  const lengthMax = Math.ceil(decodedBytes / 3) * 4 * 1.1 + 1024; // the base64 may contain line breaks
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > lengthMax) throw assetErrors.size(hash, decodedBytes, Math.floor((length / 4) * 3));
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("latin1");
}

function decode(hash: string, base64: string): Buffer {
  if (!/^[A-Za-z0-9+/\s]*(?:={1,2}\s*)?$/.test(base64)) throw assetErrors.base64(hash);
  return Buffer.from(base64, "base64");
}

/** The multipart reader gives text/plain to parts without a type; only parts with a file name mean it. */
function contentTypeOf({ filename, contentType }: PartHead): string | null {
  if (filename === undefined && (contentType === undefined || contentType === "text/plain")) return null;
  return typeOf(contentType);
}

/** `application/null` means content without a type. */
function typeOf(contentType: string | undefined): string | null {
  if (contentType === undefined || contentType === "") return null;
  return contentType === "application/null" ? "" : contentType;
}

import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { readJson } from "../../control/api/body.ts";
import { apiErrors, ApiErrors, callerError } from "../../control/api/errors.ts";
import { throwInScript, type BindingCall, type BindingHandler } from "../../workers/binding.ts";
import { parseBounded } from "../../platform/util/bounded-json.ts";
import { kvErrorCodes } from "./api-errors.ts";
import { kvErrors } from "./errors.ts";
import type { KvNamespaces, KvPut } from "./kv.ts";

const KeysSchema = z.strictObject({ keys: z.array(z.string()).max(100) });
const keysBytesMax = 1024 * 1024;
const readBytesMax = 25 * 1024 * 1024;

/** Serves the calls of a script's binding to a key-value namespace. */
export const kvBinding =
  (kv: KvNamespaces): BindingHandler<"kv_namespace"> =>
  async (call) => {
    try {
      await answer(kv, call);
    } catch (error) {
      const shown = callerError(error, kvErrorCodes);
      if (shown === undefined) throw error;
      const { status, message } = shown instanceof ApiErrors ? shown.errors[0]! : shown;
      const method = call.request.method === "POST" ? "GET" : call.request.method;
      call.request.resume();
      throwInScript(call.response, { message: `KV ${method} failed: ${status} ${message}` });
    }
  };

/** Only writes check that the namespace exists: reads of a deleted one find nothing. */
async function answer(
  kv: KvNamespaces,
  { caller, binding, url, request, response }: BindingCall<"kv_namespace">,
): Promise<void> {
  const id = binding.namespace_id;
  const query = url.searchParams;
  const key = query.get("key") ?? "";
  switch (`${request.method} ${url.pathname}`) {
    case "GET /value":
      await sendValue(kv, id, key, response);
      return;
    case "POST /values": {
      const { keys } = await readJson(request, KeysSchema, keysBytesMax);
      const found = await kv.getMany(id, keys, readBytesMax);
      const shown = [...found].map(([name, entry]) => [
        name,
        entry && { text: entry.text, metadata: entry.metadata ?? null },
      ]);
      sendJson(response, shown);
      return;
    }
    case "PUT /value":
      await kv.getNamespace(caller.accountId, id);
      await kv.put(
        id,
        key,
        request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>,
        putOptions(query, request.headers["x-kv-metadata"]),
      );
      response.writeHead(204).end();
      return;
    case "DELETE /value":
      await kv.delete(id, [key]);
      response.writeHead(204).end();
      return;
    case "GET /keys": {
      const { keys, cursor } = await kv.list(id, {
        prefix: query.get("prefix") ?? undefined,
        cursor: query.get("cursor") ?? undefined,
        limit: query.has("limit") ? number("limit", query.get("limit")!) : undefined,
      });
      sendJson(response, {
        keys,
        list_complete: cursor === undefined,
        ...(cursor === undefined ? {} : { cursor }),
      });
      return;
    }
    default:
      throw apiErrors.noRoute(request.method ?? "", url.pathname);
  }
}

async function sendValue(kv: KvNamespaces, id: string, key: string, response: ServerResponse): Promise<void> {
  const entry = await kv.get(id, key);
  if (entry === undefined) {
    response.writeHead(404, { "content-length": 0 }).end();
    return;
  }
  const { content, sizeBytes, metadata } = entry;
  const headers: Record<string, string | number> = { "content-length": sizeBytes };
  if (metadata !== undefined) headers["x-kv-metadata"] = encodeURIComponent(JSON.stringify(metadata));
  response.writeHead(200, headers);
  if (content instanceof Uint8Array) response.end(content);
  else await pipeline(content, response);
}

function sendJson(response: ServerResponse, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
}

function putOptions(query: URLSearchParams, metadata: string | string[] | undefined): KvPut {
  const [ttl, expiration] = [query.get("expiration_ttl"), query.get("expiration")];
  return {
    ...(ttl === null ? {} : { expirationTtl: number("expirationTtl", ttl) }),
    ...(expiration === null ? {} : { expiration: number("expiration", expiration) }),
    ...(typeof metadata === "string" ? { metadata: readMetadata(metadata) } : {}),
  };
}

function number(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value)) throw apiErrors.invalid(`Expected a number for ${name} but received ${text}`);
  return value;
}

function readMetadata(text: string): unknown {
  try {
    return parseBounded(decodeURIComponent(text));
  } catch {
    throw kvErrors.badMetadata();
  }
}

import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { readJson } from "../api/body.ts";
import { ApiError, apiErrors, ApiErrors } from "../api/errors.ts";
import { throwInScript, type BindingCall, type BindingHandler } from "../runtime/binding.ts";
import { kvErrors, type KvNamespaces, type KvPut } from "./kv.ts";

const KeysSchema = z.strictObject({ keys: z.array(z.string()).max(100) });
const keysBytesMax = 1024 * 1024;
const readBytesMax = 25 * 1024 * 1024;

/** What a script does through a binding to a key-value namespace. */
export const kvBinding =
  (kv: KvNamespaces): BindingHandler<"kv_namespace"> =>
  async (call) => {
    try {
      await answer(kv, call);
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof ApiErrors)) throw error;
      const { status, message } = error instanceof ApiErrors ? error.errors[0]! : error;
      const method = call.request.method === "POST" ? "GET" : call.request.method;
      call.request.resume();
      throwInScript(call.response, { message: `KV ${method} failed: ${status} ${message}` });
    }
  };

/** Only writes look for the namespace: one that is gone has nothing to be read. */
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
      await kv.put(id, key, request, putOptions(query, request.headers["x-kv-metadata"]));
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
    return JSON.parse(decodeURIComponent(text)) as unknown;
  } catch {
    throw kvErrors.badMetadata();
  }
}

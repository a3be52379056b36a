import { randomBytes } from "node:crypto";
import type { FieldSource } from "../fields/field-source.ts";
import { fields } from "../fields/fields.ts";
import { parseIp } from "../values/ip.ts";
import type { IpValue, Value } from "../values/types.ts";
import { cfSources, readPath, type CfObject } from "./cf-values.ts";
import { multipartParts, type BodyPart } from "./multipart.ts";
import {
  acceptedLanguages,
  argumentPairs,
  cookieMap,
  extensionOf,
  headerMap,
  headerText,
  mapOf,
  trimBlanks,
  type Pair,
} from "./parts.ts";

/** A description of a request. Its strings are latin1, with one character for each byte, as in Node. */
export interface RequestDescription {
  method: string;
  /** The request target: path and query, or a whole URL. */
  url: string;
  /** Alternating names and values, like Node's `rawHeaders`. */
  headers: readonly string[];
  /** Default: the `host` header, without a port. */
  host?: string;
  /** Whether the client came over TLS. */
  tls: boolean;
  /** The client's address. */
  ip: string;
  /** Like `HTTP/1.1`. */
  httpVersion: string;
  /** Milliseconds since 1970. Default now. */
  timestampMs?: number;
  rayId?: string;
  /** From 1 (automated) to 99 (human). Overrides the value in `cf`. */
  botScore?: number;
  /** The request's `cf` object: geography, TLS, bot management. */
  cf?: CfObject;
  /** The body, if it has been read. */
  body?: { raw: string; size: number; truncated: boolean } | undefined;
  /** Values of fields by name, which override all others. */
  fields?: Readonly<Record<string, Value>>;
}

const none: CfObject = {};
/** One list for each part of a body. */
type Lists = readonly (readonly string[])[];

/** Every field is a lazy getter with a cached value. */
class RequestFields {
  readonly #request: RequestDescription;
  readonly #path: string;
  readonly #query: string;
  readonly #uri: string;
  #host: string | undefined;
  #ip: IpValue | undefined;
  #headers: Map<string, string[]> | undefined;
  #cookies: Map<string, string[]> | undefined;
  #args: Pair[] | undefined;
  #argMap: Map<string, string[]> | undefined;
  #form: Pair[] | undefined;
  #formMap: Map<string, string[]> | undefined;
  #parts: BodyPart[] | undefined;
  #partMap: Map<string, string[]> | undefined;
  #cookie: string | undefined;
  #userAgent: string | undefined;
  #timestampMs: number | undefined;
  #randomSeed: string | undefined;

  constructor(request: RequestDescription) {
    this.#request = request;
    const { url } = request;
    const scheme = url.startsWith("/") ? -1 : url.indexOf("://");
    const pathStart = scheme === -1 ? 0 : url.indexOf("/", scheme + 3);
    this.#uri = pathStart === 0 ? url : pathStart === -1 ? "/" : url.slice(pathStart);
    const mark = this.#uri.indexOf("?");
    this.#path = mark === -1 ? this.#uri : this.#uri.slice(0, mark);
    this.#query = mark === -1 ? "" : this.#uri.slice(mark + 1);
  }

  /** For the getters that are defined from tables. */
  static cfOf(self: RequestFields): CfObject {
    return self.#request.cf ?? none;
  }

  get "http.host"(): string {
    return (this.#host ??= this.#request.host ?? hostOf(headerText(this.#request.headers, "host")));
  }
  get "http.cookie"(): string {
    return (this.#cookie ??= headerText(this.#request.headers, "cookie", "; "));
  }
  get "http.referer"(): string {
    return headerText(this.#request.headers, "referer");
  }
  get "http.user_agent"(): string {
    return (this.#userAgent ??= headerText(this.#request.headers, "user-agent"));
  }
  get "http.x_forwarded_for"(): string {
    return headerText(this.#request.headers, "x-forwarded-for");
  }
  get "http.request.method"(): string {
    return this.#request.method;
  }
  get "http.request.version"(): string {
    return this.#request.httpVersion;
  }
  get "http.request.uri"(): string {
    return this.#uri;
  }
  get "http.request.uri.path"(): string {
    return this.#path;
  }
  get "http.request.uri.query"(): string {
    return this.#query;
  }
  get "http.request.uri.path.extension"(): string {
    return extensionOf(this.#path);
  }
  get "http.request.full_uri"(): string {
    return `${this.#request.tls ? "https" : "http"}://${this["http.host"]}${this.#uri}`;
  }
  get "http.request.timestamp.sec"(): number {
    return Math.floor(this["http.request.timestamp.msec"] / 1000);
  }
  get "http.request.timestamp.msec"(): number {
    return (this.#timestampMs ??= this.#request.timestampMs ?? Date.now());
  }
  get "http.request.headers"(): Map<string, string[]> {
    return (this.#headers ??= headerMap(this.#request.headers));
  }
  get "http.request.headers.names"(): string[] {
    return this.#request.headers.filter((_, i) => i % 2 === 0);
  }
  get "http.request.headers.values"(): string[] {
    return this.#request.headers.filter((_, i) => i % 2 === 1);
  }
  get "http.request.cookies"(): Map<string, string[]> {
    return (this.#cookies ??= cookieMap(this["http.cookie"]));
  }
  get "http.request.accepted_languages"(): string[] {
    return acceptedLanguages(headerText(this.#request.headers, "accept-language"));
  }
  get "http.request.uri.args"(): Map<string, string[]> {
    return (this.#argMap ??= mapOf(this.#argPairs));
  }
  get "http.request.uri.args.names"(): string[] {
    return this.#argPairs.map(([name]) => name);
  }
  get "http.request.uri.args.values"(): string[] {
    return this.#argPairs.map(([, value]) => value);
  }
  get "http.request.body.raw"(): string {
    return this.#request.body?.raw ?? "";
  }
  get "http.request.body.size"(): number {
    return this.#request.body?.size ?? 0;
  }
  get "http.request.body.truncated"(): boolean {
    return this.#request.body?.truncated ?? false;
  }
  get "http.request.body.mime"(): string {
    const contentType = headerText(this.#request.headers, "content-type");
    return trimBlanks(contentType.split(";", 1)[0]!).toLowerCase();
  }
  get "http.request.body.form"(): Map<string, string[]> {
    return (this.#formMap ??= mapOf(this.#formPairs));
  }
  get "http.request.body.form.names"(): string[] {
    return this.#formPairs.map(([name]) => name);
  }
  get "http.request.body.form.values"(): string[] {
    return this.#formPairs.map(([, value]) => value);
  }
  get "http.request.body.multipart"(): Map<string, string[]> {
    return (this.#partMap ??= mapOf(
      this.#bodyParts.flatMap(({ names, value }) => names.map((name): Pair => [name, value])),
    ));
  }
  get "http.request.body.multipart.values"(): string[] {
    return this.#bodyParts.map(({ value }) => value);
  }
  get "http.request.body.multipart.names"(): Lists {
    return this.#bodyParts.map(({ names }) => names);
  }
  get "http.request.body.multipart.filenames"(): Lists {
    return this.#bodyParts.map(({ filenames }) => filenames);
  }
  get "http.request.body.multipart.content_types"(): Lists {
    return this.#bodyParts.map(({ contentTypes }) => contentTypes);
  }
  get "http.request.body.multipart.content_dispositions"(): Lists {
    return this.#bodyParts.map(({ contentDispositions }) => contentDispositions);
  }
  get "http.request.body.multipart.content_transfer_encodings"(): Lists {
    return this.#bodyParts.map(({ contentTransferEncodings }) => contentTransferEncodings);
  }
  get ssl(): boolean {
    return this.#request.tls;
  }
  get "ip.src"(): IpValue | undefined {
    return (this.#ip ??= parseIp(plainAddress(this.#request.ip)));
  }
  get "cf.ray_id"(): string {
    return this.#request.rayId ?? "";
  }
  get "cf.random_seed"(): string {
    return (this.#randomSeed ??= randomBytes(32).toString("latin1"));
  }
  get "cf.bot_management.score"(): number {
    return this.#request.botScore ?? (readBotScore(this.#request.cf ?? none) as number);
  }
  get "cf.edge.client_tcp"(): boolean {
    return this.#request.httpVersion !== "HTTP/3";
  }

  get #argPairs(): Pair[] {
    return (this.#args ??= argumentPairs(this.#query));
  }
  get #formPairs(): Pair[] {
    const isForm = this["http.request.body.mime"] === "application/x-www-form-urlencoded";
    return (this.#form ??= argumentPairs(isForm ? this["http.request.body.raw"] : ""));
  }
  get #bodyParts(): BodyPart[] {
    const { headers, body } = this.#request;
    return (this.#parts ??= multipartParts(headerText(headers, "content-type"), body?.raw ?? ""));
  }
}

/** Returns a function that reads a field from `cf`, or its neutral value. */
function cfReader(name: string): (cf: CfObject) => Value | undefined {
  const [path, read] = cfSources.get(name)!;
  const properties = path.split(".");
  const { neutral } = fields.get(name)!;
  return (cf) => read(readPath(cf, properties)) ?? neutral;
}

const readBotScore = cfReader("cf.bot_management.score");

/** `example.com:8443` names the host `example.com`. */
function hostOf(header: string): string {
  return header.replace(/:\d+$/, "").toLowerCase();
}

/** Converts IPv4-mapped addresses to IPv4. */
function plainAddress(ip: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(ip) ? ip.slice(7) : ip;
}

const prototype = RequestFields.prototype as unknown as object;
for (const name of cfSources.keys()) {
  if (name in prototype) continue;
  const read = cfReader(name);
  Object.defineProperty(prototype, name, {
    get(this: RequestFields) {
      return read(RequestFields.cfOf(this));
    },
  });
}
for (const { name, neutral } of fields.values()) {
  if (name in prototype) continue;
  // `raw.` fields equal the current ones, because no rule changes a request before other rules see it.
  const current = name.startsWith("raw.") ? name.slice(4) : name;
  if (current !== name && current in prototype) {
    const inherited = Object.getOwnPropertyDescriptor(prototype, current)!;
    Object.defineProperty(prototype, name, inherited);
  } else {
    Object.defineProperty(prototype, name, { value: neutral });
  }
}

/** The fields of a request, computed lazily. */
export function requestFields(request: RequestDescription): FieldSource {
  const source = new RequestFields(request) as unknown as FieldSource;
  for (const [name, value] of Object.entries(request.fields ?? {})) {
    Object.defineProperty(source, name, { value });
  }
  return source;
}

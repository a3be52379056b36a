import { randomBytes } from "node:crypto";
import type { FieldSource } from "../field-source.ts";
import { fields } from "../fields.ts";
import { parseIp } from "../ip.ts";
import type { IpValue, Value } from "../types.ts";
import { cfSources, readPath, type CfObject } from "./cf-values.ts";
import { acceptedLanguages, argumentMap, cookieMap, extensionOf, headerMap, headerText } from "./parts.ts";

/** What is known of a request. Strings of the request itself are latin1, one character per byte, as Node gives them. */
export interface RequestDescription {
  method: string;
  /** The request target: path and query, or a whole URL. */
  url: string;
  /** Names and values in turn, like Node's `rawHeaders`. */
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
  /** 1 (surely automated) to 99 (surely human); wins over what `cf` says. */
  botScore?: number;
  /** The request's `cf` object: geography, TLS, bot management. */
  cf?: CfObject;
  /** The body, where it has been read. */
  body?: { raw: string; size: number; truncated: boolean };
  /** Values of further fields by name, which win over everything else. */
  fields?: Readonly<Record<string, Value>>;
}

const none: CfObject = {};

/** Every field is a getter: what no rule asks for is never worked out, what many ask for is worked out once. */
class RequestFields {
  readonly #request: RequestDescription;
  readonly #path: string;
  readonly #query: string;
  readonly #uri: string;
  #host: string | undefined;
  #ip: IpValue | undefined;
  #headers: Map<string, string[]> | undefined;
  #cookies: Map<string, string[]> | undefined;
  #args: Map<string, string[]> | undefined;
  #form: Map<string, string[]> | undefined;
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
    return (this.#args ??= argumentMap(this.#query));
  }
  get "http.request.uri.args.names"(): string[] {
    return [...this["http.request.uri.args"].keys()];
  }
  get "http.request.uri.args.values"(): string[] {
    return [...this["http.request.uri.args"].values()].flat();
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
    return headerText(this.#request.headers, "content-type").split(";", 1)[0]!.trim().toLowerCase();
  }
  get "http.request.body.form"(): Map<string, string[]> {
    const isForm = this["http.request.body.mime"] === "application/x-www-form-urlencoded";
    return (this.#form ??= argumentMap(isForm ? this["http.request.body.raw"] : ""));
  }
  get "http.request.body.form.names"(): string[] {
    return [...this["http.request.body.form"].keys()];
  }
  get "http.request.body.form.values"(): string[] {
    return [...this["http.request.body.form"].values()].flat();
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
}

/** Reads a field out of `cf`, or its neutral value. */
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

/** A v4 client on a v6 socket is a v4 client. */
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
  // What a request was before rules changed it: nothing changes requests before the rules see them.
  const current = name.startsWith("raw.") ? name.slice(4) : name;
  if (current !== name && current in prototype) {
    const inherited = Object.getOwnPropertyDescriptor(prototype, current)!;
    Object.defineProperty(prototype, name, inherited);
  } else {
    Object.defineProperty(prototype, name, { value: neutral });
  }
}

/** The fields of a request, worked out as they are asked for. */
export function requestFields(request: RequestDescription): FieldSource {
  const source = new RequestFields(request) as unknown as FieldSource;
  for (const [name, value] of Object.entries(request.fields ?? {})) {
    Object.defineProperty(source, name, { value });
  }
  return source;
}

/**
 * The used part of workerd's configuration as typed values. Field names are those of workerd.capnp;
 * `encodeConfig` writes Cap'n Proto's text form.
 */
export interface WorkerdConfig {
  services: WorkerdService[];
  sockets: WorkerdSocket[];
  v8Flags?: string[];
}

export type WorkerdService = { name: string } & (
  | { worker: Worker }
  | { external: ExternalServer }
  | { disk: { path: string; writable: boolean } }
);

export interface Worker {
  modules: { name: string; esModule: string }[];
  compatibilityDate: string;
  compatibilityFlags: string[];
  bindings: WorkerdBinding[];
  globalOutbound: string;
  durableObjectNamespaces?: { className: string; uniqueKey: string; enableSql: boolean }[];
  durableObjectStorage?: { localDisk: string };
}

export type WorkerdBinding = { name: string } & (
  | { service: string }
  | { text: string }
  | { workerLoader: { id: string } }
  | { durableObjectNamespace: { className: string } }
  | { wrapped: { moduleName: string; innerBindings: WorkerdBinding[] } }
);

export interface ExternalServer {
  address: string;
  http: HttpOptions;
}

export interface WorkerdSocket {
  name: string;
  address: string;
  http: HttpOptions;
  service: string | { name: string; entrypoint: string };
}

export interface HttpOptions {
  style?: Enum<"proxy" | "host">;
  cfBlobHeader?: string;
  forwardedProtoHeader?: string;
  capnpConnectHost?: string;
}

/** An enumerant is written without quotes. */
export interface Enum<T extends string = string> {
  readonly enumerant: T;
}
export const enumerant = <T extends string>(value: T): Enum<T> => ({ enumerant: value });

export const encodeConfig = (config: WorkerdConfig): string =>
  `using Workerd = import "/workerd/workerd.capnp";\nconst config :Workerd.Config = ${encode(config)};\n`;

function encode(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.map(encode).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    if ("enumerant" in value) return (value as Enum).enumerant;
    const fields = Object.entries(value).filter(([, each]) => each !== undefined);
    return `(${fields.map(([name, each]) => `${name} = ${encode(each)}`).join(", ")})`;
  }
  throw new TypeError(`not a value of a workerd configuration: ${typeof value}`);
}

/** Escapes every byte outside printable ASCII, so that no character has a meaning for the parser. */
function quote(text: string): string {
  let out = '"';
  for (const byte of Buffer.from(text, "utf8")) {
    if (byte === 0x22 || byte === 0x5c) out += `\\${String.fromCharCode(byte)}`;
    else if (byte === 0x0a) out += "\\n";
    else if (byte < 0x20 || byte > 0x7e) out += `\\x${byte.toString(16).padStart(2, "0")}`;
    else out += String.fromCharCode(byte);
  }
  return `${out}"`;
}

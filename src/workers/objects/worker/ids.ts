import { hmacSha256, sha256 } from "./sha256.ts";

/*
 * Ids of Durable Objects, computed as workerd does (actor-id-impl.c++): 16 bytes of a name or of chance, and 16 bytes
 * that show the namespace. Native functions are saved before the script's code is loaded.
 */
const { apply } = Reflect;
const NativeTypeError = TypeError;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);
const random = crypto.getRandomValues.bind(crypto);
const { get, set } = Map.prototype;
const [Bytes, NativeMap] = [Uint8Array, Map];
const test = RegExp.prototype.test;
const { slice, charCodeAt, toLowerCase } = String.prototype;
const { freeze } = Object;

const baseBytes = 16;
const nameBytesMax = 1024;
const namesMax = 1000;
const digits = "0123456789abcdef";

function toHex(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += digits[bytes[i]! >> 4]! + digits[bytes[i]! & 15]!;
  return text;
}

const nibble = (code: number): number => (code <= 57 ? code - 48 : code - 87);
function fromHex(text: string): Uint8Array {
  const bytes = new Bytes(text.length / 2);
  for (let i = 0; i < bytes.length; i++) {
    const high = apply(charCodeAt, text, [2 * i]) as number;
    const low = apply(charCodeAt, text, [2 * i + 1]) as number;
    bytes[i] = (nibble(high) << 4) | nibble(low);
  }
  return bytes;
}

let create: (hex: string, namespace: string, name?: string, jurisdiction?: string) => DurableObjectId;
let namespaceOf: (id: DurableObjectId) => string;
let isId: (value: unknown) => value is DurableObjectId;

/** The class of `ctx.id` and of the ids of bindings. */
export class DurableObjectId {
  readonly #hex: string;
  readonly #namespace: string;
  declare readonly name?: string;
  declare readonly jurisdiction?: string;

  private constructor(hex: string, namespace: string, name?: string, jurisdiction?: string) {
    this.#hex = hex;
    this.#namespace = namespace;
    if (name !== undefined) this.name = name;
    if (jurisdiction !== undefined) this.jurisdiction = jurisdiction;
    freeze(this);
  }

  toString(): string {
    return this.#hex;
  }

  equals(other: unknown): boolean {
    if (!isId(other))
      throw new NativeTypeError(
        "Failed to execute 'equals' on 'DurableObjectId': parameter 1 is not of type 'DurableObjectId'.",
      );
    return other.#hex === this.#hex;
  }

  static {
    create = (hex, namespace, name, jurisdiction) => new DurableObjectId(hex, namespace, name, jurisdiction);
    namespaceOf = (id) => id.#namespace;
    isId = (value): value is DurableObjectId => typeof value === "object" && value !== null && #hex in value;
  }
}

export const isObjectId = (value: unknown): value is DurableObjectId => isId(value);

/** The hexadecimal form of an id; a script may have replaced `toString`. */
const toText = DurableObjectId.prototype.toString;
export const hexOf = (id: DurableObjectId): string => apply(toText, id, []);

/** The id of an object, as its own instance sees it. */
export const ownId = (
  hex: string,
  namespace: string,
  name: string | undefined,
  jurisdiction: string | undefined,
): DurableObjectId => create(hex, namespace, name, jurisdiction);

/** Makes the ids of one namespace, or of a jurisdiction of it. */
export class IdMaker {
  readonly #namespace: string;
  readonly #jurisdiction: string | undefined;
  readonly #key: Uint8Array;
  /** The ids of the last names. */
  #known = new NativeMap<string, DurableObjectId>();

  constructor(namespace: string, jurisdiction?: string) {
    this.#namespace = namespace;
    this.#jurisdiction = jurisdiction;
    this.#key = sha256(encode(namespace));
  }

  fromName(name: string): DurableObjectId {
    const known = apply(get, this.#known, [name]) as DurableObjectId | undefined;
    if (known !== undefined) return known;
    // Names of a jurisdiction are other objects than those without one.
    const text = this.#jurisdiction === undefined ? name : `${this.#jurisdiction}\0${name}`;
    const isShort = encode(name).length <= nameBytesMax;
    const id = this.#make(hmacSha256(this.#key, encode(text)), isShort ? name : undefined);
    if (this.#known.size >= namesMax) this.#known = new NativeMap();
    apply(set, this.#known, [name, id]);
    return id;
  }

  unique(): DurableObjectId {
    return this.#make(random(new Bytes(baseBytes)), undefined);
  }

  fromText(text: string): DurableObjectId {
    const hex = apply(toLowerCase, text, []) as string;
    if (!(apply(test, /^[0-9a-f]{64}$/, [hex]) as boolean))
      throw new NativeTypeError("Invalid Durable Object ID: must be 64 hex digits");
    const id = this.#make(fromHex(apply(slice, hex, [0, 2 * baseBytes]) as string), undefined);
    if (hexOf(id) !== hex) throw new NativeTypeError("Durable Object ID is not valid for this namespace.");
    return id;
  }

  /** Returns an id of this namespace as it is. */
  checked(id: unknown): DurableObjectId {
    if (!isId(id))
      throw new NativeTypeError(
        "Failed to execute 'get' on 'DurableObjectNamespace': parameter 1 is not of type 'DurableObjectId'.",
      );
    if (namespaceOf(id) !== this.#namespace || (this.#jurisdiction ?? id.jurisdiction) !== id.jurisdiction)
      throw new NativeTypeError(
        this.#jurisdiction === undefined || namespaceOf(id) !== this.#namespace
          ? "get called on a DurableObjectNamespace with an ID for a different namespace"
          : "get called on jurisdictional subnamespace with an ID from a different jurisdiction",
      );
    return id;
  }

  #make(base: Uint8Array, name: string | undefined): DurableObjectId {
    const bytes = new Bytes(2 * baseBytes);
    for (let i = 0; i < baseBytes; i++) bytes[i] = base[i]!;
    const tail = hmacSha256(this.#key, bytes.subarray(0, baseBytes));
    for (let i = 0; i < baseBytes; i++) bytes[baseBytes + i] = tail[i]!;
    return create(toHex(bytes), this.#namespace, name, this.#jurisdiction);
  }
}

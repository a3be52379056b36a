import { z } from "zod";
import { withoutSecrets as withoutCredentials } from "../../platform/access-log/redact.ts";

/** The mark of a field in openapi.json whose value is never shown again: not in the audit log, not in errors. */
const mark = "x-sensitive";

/** Marks a field that takes a secret, or data of customers. Apply it last, before `optional`. */
export const sensitive = <S extends z.ZodType>(schema: S): S => schema.meta({ [mark]: true });

/** The parts of a value that the audit log may show, by its schema. */
export interface Shape {
  /** The value may be shown. Lists and objects are never shown whole. */
  isShown: boolean;
  isSensitive: boolean;
  fields: Map<string, Shape>;
  /** Of a list. */
  items?: Shape;
  /** Of fields that the schema does not name. */
  values?: Shape;
}

const shapes = new WeakMap<z.ZodType, Shape>();
const shownTypes = new Set(
  "string number int boolean bigint literal enum null date template_literal nan".split(" "),
);

/** The shape of a schema. A value that some branch of a union marks as sensitive is sensitive in all. */
export function shapeOf(schema: z.ZodType): Shape {
  const known = shapes.get(schema);
  if (known !== undefined) return known;
  const shape: Shape = { isShown: false, isSensitive: false, fields: new Map() };
  shapes.set(schema, shape); // first, because schemas may contain themselves
  const meta = z.globalRegistry.get(schema);
  if (meta?.[mark] === true || meta?.["format"] === "binary") shape.isSensitive = true;
  fill(shape, schema);
  return shape;
}

/**
 * Definitions of Zod, as far as they contain other schemas. Lazy ones are not followed: they are any JSON, which is data
 * of customers.
 */
interface Definition {
  type: string;
  shape?: Record<string, z.ZodType>;
  catchall?: z.ZodType;
  element?: z.ZodType;
  valueType?: z.ZodType;
  options?: readonly z.ZodType[];
  innerType?: z.ZodType;
  in?: z.ZodType;
  out?: z.ZodType;
  left?: z.ZodType;
  right?: z.ZodType;
  items?: readonly z.ZodType[];
  rest?: z.ZodType | null;
}

function fill(shape: Shape, schema: z.ZodType): void {
  const of = schema.def as unknown as Definition;
  if (shownTypes.has(of.type)) shape.isShown = true;
  for (const [name, field] of Object.entries(of.shape ?? {})) setField(shape, name, shapeOf(field));
  // Catchalls of strict objects have the type never.
  const values = of.valueType ?? of.catchall;
  if (values !== undefined) shape.values = joined(shape.values, shapeOf(values));
  for (const item of [of.element, of.rest, ...(of.type === "tuple" ? (of.items ?? []) : [])])
    if (item !== undefined && item !== null) shape.items = joined(shape.items, shapeOf(item));
  const insides = [...(of.options ?? []), of.innerType, of.in, of.out, of.left, of.right];
  for (const inside of insides) if (inside !== undefined) add(shape, shapeOf(inside));
}

function setField(shape: Shape, name: string, field: Shape): void {
  shape.fields.set(name, joined(shape.fields.get(name), field));
}

const joins = new WeakMap<Shape, WeakMap<Shape, Shape>>();

function joined(before: Shape | undefined, next: Shape): Shape {
  if (before === undefined || before === next) return next;
  const known = joins.get(before)?.get(next);
  if (known !== undefined) return known;
  const both: Shape = { isShown: false, isSensitive: false, fields: new Map() };
  // First, because shapes may contain themselves.
  if (!joins.has(before)) joins.set(before, new WeakMap());
  joins.get(before)!.set(next, both);
  add(both, before);
  add(both, next);
  return both;
}

function add(shape: Shape, other: Shape): void {
  shape.isShown ||= other.isShown;
  shape.isSensitive ||= other.isSensitive;
  for (const [name, field] of other.fields) setField(shape, name, field);
  if (other.items !== undefined) shape.items = joined(shape.items, other.items);
  if (other.values !== undefined) shape.values = joined(shape.values, other.values);
}

/** Whether the value at a path, or one around it, is sensitive. */
export function isSensitiveAt(schema: z.ZodType, path: readonly PropertyKey[]): boolean {
  let shape: Shape | undefined = shapeOf(schema);
  for (const key of path) {
    if (shape === undefined || shape.isSensitive) break;
    shape = typeof key === "number" ? shape.items : (shape.fields.get(String(key)) ?? shape.values);
  }
  return shape?.isSensitive === true;
}

const isUrl = /^[a-z][a-z\d+.-]*:\/\//i;
const textMax = 256;
const itemsMax = 20;
const depthMax = 12;

/** A value as the audit log shows it: declared fields, without secrets, long texts and long lists shortened. */
export function withoutSecrets(value: unknown, shape: Shape | undefined, depth = 0): unknown {
  if (value === null || value === undefined) return value;
  if (shape === undefined || shape.isSensitive || depth > depthMax) return "[not shown]";
  if (Array.isArray(value)) {
    const shown = value.slice(0, itemsMax).map((each) => withoutSecrets(each, shape.items, depth + 1));
    return value.length > itemsMax ? [...shown, `[${value.length - itemsMax} more]`] : shown;
  }
  if (typeof value === "object") {
    if (shape.fields.size === 0 && shape.values === undefined) return "[not shown]";
    return shownFields(value, shape, depth);
  }
  if (!shape.isShown) return "[not shown]";
  if (typeof value !== "string") return value;
  const text = isUrl.test(value) ? withoutCredentials(value) : value;
  return text.length > textMax ? `${text.slice(0, textMax)}…` : text;
}

/** Loops, because each change pays for it and lists of entries cost twice as much. */
function shownFields(value: object, shape: Shape, depth: number): object {
  const shown: Record<string, unknown> = {};
  let count = 0;
  for (const name of Object.keys(value)) {
    const field = shape.fields.get(name) ?? shape.values;
    if (field === undefined || name === "__proto__") continue;
    if (++count > 4 * itemsMax) break;
    const each = (value as Record<string, unknown>)[name];
    shown[name.length > textMax ? name.slice(0, textMax) : name] = withoutSecrets(each, field, depth + 1);
  }
  return shown;
}

/** JSON of an object within a size in bytes. The longest fields are left out until it fits. */
export function boundedJson(value: unknown, bytesMax: number): string | null {
  if (value === undefined || value === null) return null;
  const text = JSON.stringify(value);
  let bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return text;
  const nothing = JSON.stringify({ left_out_bytes: bytes });
  if (typeof value !== "object" || Array.isArray(value)) return nothing;
  const fields = Object.entries(value).flatMap(([name, each]) => {
    const json = JSON.stringify(each) as string | undefined;
    return json === undefined ? [] : [{ name, json, bytes: Buffer.byteLength(json) }];
  });
  // Each field is written once: a hostile body has many large ones.
  for (const field of fields.toSorted((a, b) => b.bytes - a.bytes)) {
    field.json = `"[${field.bytes} bytes left out]"`;
    bytes += field.json.length - field.bytes;
    if (bytes <= bytesMax)
      return `{${fields.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(",")}}`;
  }
  return nothing;
}

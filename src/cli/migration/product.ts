import type { z } from "zod";
import type { MigratedAccount, AccountZone } from "./account/account.ts";

/** The groups of --include. */
export const groups = [
  "zones",
  "settings",
  "dns",
  "rules",
  "snippets",
  "kv",
  "d1",
  "queues",
  "dispatch",
  "scripts",
  "workflows",
  "images",
] as const;
export type Group = (typeof groups)[number];

/** A thing of an account, described without ids, so that the description is the same in every account. */
export interface DescribedResource {
  product: string;
  /** The name of the zone that contains it. */
  zone?: string | undefined;
  /** Unique in its product and zone. */
  key: string;
  /** Its id in the account that it was read from, if it has one. Used for the import blocks of Terraform only. */
  id?: string | undefined;
  value: Record<string, unknown>;
}

/** Resources that are not imported, and the reason. */
export interface LeftOut {
  product: string;
  zone?: string | undefined;
  /** The first hundred. */
  names: string[];
  count: number;
  why: string;
}

export interface FoundResource {
  id?: string | undefined;
  value: unknown;
}
/** The surroundings of a product when it reads: the account, the zone if it belongs to one, and a list for the rest. */
export interface Reading {
  account: MigratedAccount;
  zone: AccountZone;
  readonly leaveOut: (names: readonly string[], why: string, product?: string) => void;
}
export interface Writing {
  account: MigratedAccount;
  zone: AccountZone;
}

/**
 * All that is known about a product: how it is read, described, compared and written. `write` gets the resource that
 * the target has under the same key, and changes it; without one it creates the resource.
 */
export interface Product<Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly name: string;
  readonly group: Group;
  readonly scope: "zone" | "account";
  /** The description. Other fields of an answer are not part of it. */
  readonly schema: z.ZodObject<Shape>;
  key(value: z.output<z.ZodObject<Shape>>): string;
  read(from: Reading): AsyncIterable<FoundResource>;
  write(
    to: Writing,
    value: z.output<z.ZodObject<Shape>>,
    before: { id?: string | undefined; value: z.output<z.ZodObject<Shape>> } | undefined,
  ): Promise<void>;
  /** Creates several at once, all or none. Absent if the API has no such call. */
  createAll?(to: Writing, values: readonly z.output<z.ZodObject<Shape>>[]): Promise<void>;
  /** Absent where the platform always has one. */
  remove?(
    to: Writing,
    before: { id?: string | undefined; value: z.output<z.ZodObject<Shape>> },
  ): Promise<void>;
  /** The part of the description that decides whether two are equal; all of it by default. */
  comparable?(value: z.output<z.ZodObject<Shape>>): unknown;
  /** The value that writing can reach, given the target's; the same value by default. */
  reachable?(
    value: z.output<z.ZodObject<Shape>>,
    existing: z.output<z.ZodObject<Shape>> | undefined,
  ): z.output<z.ZodObject<Shape>>;
  /** Whether the resource has expired. */
  isOver?(value: z.output<z.ZodObject<Shape>>, nowMs: number): boolean;
}

/** Declares a product. Its name and group are those of one product only. */
export const product = <Shape extends z.ZodRawShape>(declared: Product<Shape>): Product => declared;

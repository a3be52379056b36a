import { setTimeout as delay } from "node:timers/promises";
import type { MigratedAccount } from "./account/account.ts";
import { compareResources, type ResourceDifference } from "./compare.ts";
import type { Document } from "./document.ts";
import { MigrationError, printable, UncertainError } from "./failure.ts";
import type { Product, DescribedResource } from "./product.ts";
import { products } from "./products.ts";
import { readResources } from "./read.ts";

export interface ApplyStep {
  product: string;
  zone?: string | undefined;
  key: string;
  action: "create" | "change" | "remove" | "keep";
}
export interface Failure {
  step: ApplyStep;
  why: string;
}
export interface Applied {
  done: ApplyStep[];
  failures: Failure[];
}

/** Passes over all products: the last one only confirms that nothing is left. */
const passesMax = 6;
const pauseMs = 1000;

/**
 * The steps that make the account like the document, without making them. Resources that only the account has are removed
 * with `prune`, and kept without it.
 */
export async function planSteps(
  document: Document,
  account: MigratedAccount,
  prune: boolean,
): Promise<ApplyStep[]> {
  const steps: ApplyStep[] = [];
  for (const product of productsOf(document)) {
    const work = await workOf(document, account, product);
    steps.push(...work.differences.map((difference) => stepOf(product, difference, prune)));
  }
  return steps;
}

/**
 * Makes the account like the document. Each pass compares both and writes the differences, so a repeated call continues,
 * and the next pass detects a write whose answer was lost. Ends when nothing differs, or when a pass changes nothing.
 */
export async function apply(
  document: Document,
  account: MigratedAccount,
  prune: boolean,
  report: (step: ApplyStep) => void,
): Promise<Applied> {
  const done: ApplyStep[] = [];
  let failures: Failure[] = [];
  for (let pass = 0; pass < passesMax; pass++) {
    const before = done.length;
    failures = [];
    try {
      for (const product of productsOf(document))
        await applyProduct(document, account, product, prune, failures, (step) => {
          done.push(step);
          report(step);
        });
    } catch (error) {
      if (!(error instanceof UncertainError) || pass + 1 === passesMax) throw error;
      await delay(pauseMs);
      continue;
    }
    if (done.length === before) break;
  }
  return { done, failures };
}

/** Secrets of the document without a value, as "script: name". */
export const emptySecrets = ({ resources }: Document): string[] =>
  resources.flatMap(({ key, value }) =>
    ((value["bindings"] ?? []) as { type: string; name: string; text?: unknown }[])
      .filter(({ type, text }) => type === "secret_text" && text === null)
      .map(({ name }) => `${key}: ${name}`),
  );

const productsOf = ({ include }: Document): Product[] =>
  products.filter(({ group }) => include.includes(group));

interface Work {
  wanted: Map<string, DescribedResource>;
  existing: Map<string, DescribedResource>;
  differences: ResourceDifference[];
}

async function workOf(document: Document, account: MigratedAccount, product: Product): Promise<Work> {
  const existing = await readResources(account, product);
  const byKey = keyed(existing);
  const wanted = document.resources
    .filter((resource) => resource.product === product.name)
    .map((resource) => {
      const value = product.reachable?.(resource.value, byKey.get(keyOf(resource))?.value) ?? resource.value;
      return { ...resource, value };
    });
  const differences = compareResources(product, wanted, existing);
  return { wanted: keyed(wanted), existing: byKey, differences };
}

async function applyProduct(
  document: Document,
  account: MigratedAccount,
  product: Product,
  prune: boolean,
  failures: Failure[],
  report: (step: ApplyStep) => void,
): Promise<void> {
  const work = await workOf(document, account, product);
  const make = async (difference: ResourceDifference): Promise<void> => {
    const step = stepOf(product, difference, prune);
    if (step.action === "keep") return;
    try {
      const zone = zoneFor(account, product, difference.zone);
      const key = keyOf(difference);
      const before = work.existing.get(key);
      if (step.action === "remove") await product.remove!({ account, zone }, before!);
      else await product.write({ account, zone }, work.wanted.get(key)!.value, before);
      report(step);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      failures.push({ step, why: error.message });
    }
  };
  const isRemoval = ({ kind }: ResourceDifference): boolean => kind === "only in B";
  // Removals come first: a name with addresses can have no CNAME.
  for (const difference of work.differences.filter(isRemoval)) await make(difference);
  const created = await createTogether(account, product, work);
  for (const difference of created) report(stepOf(product, difference, prune));
  for (const difference of work.differences)
    if (!isRemoval(difference) && !created.has(difference)) await make(difference);
}

/** An error that is about one resource. */
const isRefusal = (error: unknown): error is MigrationError =>
  error instanceof MigrationError && !(error instanceof UncertainError);

/** The public service takes 200 records of a free zone in one call. */
const togetherMax = 200;
/** Fewer are created by single calls, so that the id of each follows from itself alone in a test. */
const togetherMin = 100;

/** Creates many resources in few calls. A refused call is left to single ones, which name the resource. */
async function createTogether(
  account: MigratedAccount,
  product: Product,
  { wanted, differences }: Work,
): Promise<Set<ResourceDifference>> {
  const created = new Set<ResourceDifference>();
  if (product.createAll === undefined) return created;
  const missing = differences.filter(({ kind }) => kind === "only in A");
  for (const [name, all] of Map.groupBy(missing, ({ zone }) => zone))
    for (let at = 0; at + togetherMin <= all.length; at += togetherMax) {
      const some = all.slice(at, at + togetherMax);
      try {
        const zone = zoneFor(account, product, name);
        await product.createAll(
          { account, zone },
          some.map((each) => wanted.get(keyOf(each))!.value),
        );
        for (const each of some) created.add(each);
      } catch (error) {
        if (!isRefusal(error)) throw error;
      }
    }
  return created;
}

/** A zone that is still to be created has no id. */
function zoneFor(
  account: MigratedAccount,
  product: Product,
  name: string | undefined,
): { id: string; name: string } {
  if (name === undefined || product.name === "zone") return { id: "", name: name ?? "" };
  return account.zone(name);
}

function stepOf(
  product: Product,
  { product: name, zone, key, kind }: ResourceDifference,
  prune: boolean,
): ApplyStep {
  const canRemove = prune && product.remove !== undefined;
  const action =
    kind === "only in A" ? "create" : kind === "different" ? "change" : canRemove ? "remove" : "keep";
  return { product: name, ...(zone === undefined ? {} : { zone }), key, action };
}

const keyOf = ({ zone, key }: { zone?: string | undefined; key: string }): string => `${zone ?? ""} ${key}`;
const keyed = (resources: readonly DescribedResource[]): Map<string, DescribedResource> =>
  new Map(resources.map((resource) => [keyOf(resource), resource]));

/** A line about a step. */
export const showStep = ({ action, product, zone, key }: ApplyStep): string =>
  `${action.padEnd(6)}  ${product}  ${printable(key)}${zone === undefined || zone === key ? "" : ` (${zone})`}`;

import type { MigratedAccount, AccountZone } from "./account/account.ts";
import { documentCharsMax, documentVersion, type Document } from "./document.ts";
import { CallRefused, MigrationError, printable } from "./failure.ts";
import type { Group, LeftOut, Product, Reading, DescribedResource } from "./product.ts";
import { products } from "./products.ts";
import { readAbsentProducts } from "./absent-products.ts";

const namesMax = 100;

/** The resources that are not imported, grouped by reason. */
class LeftOuts {
  readonly all: LeftOut[] = [];

  add(product: string, zone: string | undefined, names: readonly string[], why: string): void {
    if (names.length === 0) return;
    let entry = this.all.find((each) => each.product === product && each.zone === zone && each.why === why);
    if (entry === undefined) {
      entry = { product, ...(zone === undefined ? {} : { zone }), names: [], count: 0, why };
      this.all.push(entry);
    }
    entry.count += names.length;
    entry.names.push(...names.slice(0, namesMax - entry.names.length).map((name) => printable(name)));
  }
}

/**
 * Reads the resources of an account. A product that the token may not read is left out by name; so are single resources
 * of another form than expected. `report` receives the name of each product before it is read.
 */
export async function readAccount(
  account: MigratedAccount,
  baseUrl: string,
  include: readonly Group[],
  report: (text: string) => void,
): Promise<Document> {
  const leftOuts = new LeftOuts();
  const resources: DescribedResource[] = [];
  let chars = 0;
  for (const product of products.filter(({ group }) => include.includes(group))) {
    report(product.name);
    for await (const resource of readProduct(account, product, leftOuts)) {
      chars += charsOf(resource.value);
      if (chars > documentCharsMax)
        throw new MigrationError(
          `The resources up to ${product.name} have more than ${documentCharsMax} characters: choose fewer with --include`,
        );
      resources.push(resource);
    }
  }
  return {
    selvedge_import: documentVersion,
    source: { base_url: baseUrl, account_id: account.accountId },
    zones: account.zones.map(({ id, name }) => ({ id, name })),
    include: [...include],
    resources,
    left_out: leftOuts.all,
  };
}

/** Adds the products that the account uses and no installation supports. */
export async function addAbsentProducts(account: MigratedAccount, document: Document): Promise<void> {
  for (const entry of await readAbsentProducts(account)) document.left_out.push(entry);
}

/** The resources of one product, in the order of the zones. */
export async function readResources(
  account: MigratedAccount,
  product: Product,
): Promise<DescribedResource[]> {
  const found: DescribedResource[] = [];
  for await (const resource of readProduct(account, product, new LeftOuts())) found.push(resource);
  return found;
}

async function* readProduct(
  account: MigratedAccount,
  product: Product,
  leftOuts: LeftOuts,
): AsyncGenerator<DescribedResource> {
  const zones: (AccountZone | undefined)[] = product.scope === "zone" ? account.zones : [undefined];
  for (const zone of zones) {
    const leaveOut: Reading["leaveOut"] = (names, why, other) =>
      leftOuts.add(other ?? product.name, zone?.name, names, why);
    try {
      const from = { account, zone: zone ?? { id: "", name: "" }, leaveOut };
      for await (const { id, value } of product.read(from)) {
        const parsed = product.schema.safeParse(value);
        if (parsed.success) yield resourceOf(product, zone, id, parsed.data);
        else {
          const [issue] = parsed.error.issues;
          leaveOut([id ?? "?"], `unexpected ${issue!.path.join(".")}: ${printable(issue!.message)}`);
        }
      }
    } catch (error) {
      // The account does not have the product, or the token does not allow reading it.
      if (!(error instanceof CallRefused) || !error.isAbsence) throw error;
      if (error.status === 403) leaveOut(["all"], `cannot be read: ${error.message}`);
    }
  }
}

const resourceOf = (
  product: Product,
  zone: AccountZone | undefined,
  id: string | undefined,
  value: Record<string, unknown>,
): DescribedResource => ({
  product: product.name,
  ...(zone === undefined ? {} : { zone: zone.name }),
  key: product.key(value),
  ...(id === undefined ? {} : { id }),
  value,
});

/** About the length in a document. Only bytes can be long. */
function charsOf(value: unknown): number {
  if (typeof value === "string") return value.length + 8;
  if (typeof value !== "object" || value === null) return 8;
  return Object.values(value).reduce<number>((sum, each) => sum + charsOf(each), 16);
}

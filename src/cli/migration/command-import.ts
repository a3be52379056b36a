import type { Command } from "commander";
import { ReadingJournal } from "./account/journal.ts";
import { anonymise } from "./anonymise.ts";
import { groupsOf, openAccount, profileOf, rateOf, printProgress } from "./command-accounts.ts";
import { writeDocument, type Document } from "./document.ts";
import { groups, type LeftOut } from "./product.ts";
import { addAbsentProducts, readAccount } from "./read.ts";
import { print } from "../output.ts";

interface ImportOptions {
  zone?: string[];
  include?: string;
  anonymise?: boolean;
  out: string;
  rate?: string;
  json?: boolean;
}

/** `import`: reads an account into a file, with GET requests only. */
export function registerImportCommand(program: Command): void {
  program
    .command("import <profile>")
    .description("read an account into a file, with GET alone; the profile is cloudflare, or one of yours")
    .option("--zone <names...>", "the zones; all zones of the account by default")
    .option("--include <groups>", `some of ${groups.join(",")}; all by default`)
    .option("--anonymise", "replace addresses, texts, comments and tags of DNS records")
    .requiredOption("--out <file>", "the file to write; FILE.partial keeps the answers until it is complete")
    .option("--rate <calls>", "calls per second; 0 for no limit; by default 4, without limit for selvedge")
    .option("--json", "print JSON")
    .action(async (name: string, options: ImportOptions) => {
      const document = await importAccount(name, options);
      print(options.json === true ? summaryJson(document) : summary(document, options.out));
    });
}

async function importAccount(name: string, options: ImportOptions): Promise<Document> {
  const profile = profileOf(name, process.env);
  const include = groupsOf(options.include);
  const reader = [
    profile.baseUrl,
    profile.token,
    profile.accountId ?? "",
    ...(options.zone ?? []),
    include.join(","),
  ];
  const recorded = new ReadingJournal(`${options.out}.partial`, reader);
  if (recorded.size > 0) printProgress(`continuing after ${recorded.size} answers`);
  const account = await openAccount(profile, options.zone, {
    callsPerSecond: rateOf(options.rate, name),
    recorded,
    report: printProgress,
  });
  const document = await readAccount(account, profile.baseUrl, include, (product) =>
    printProgress(`reading ${product}`),
  );
  printProgress("looking for products that cannot be imported");
  await addAbsentProducts(account, document);
  const written = options.anonymise === true ? anonymise(document) : document;
  writeDocument(options.out, written);
  recorded.remove();
  return written;
}

const countsOf = ({ resources }: Document): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const { product } of resources) counts.set(product, (counts.get(product) ?? 0) + 1);
  return counts;
};

const summaryJson = (document: Document): string =>
  JSON.stringify({ resources: Object.fromEntries(countsOf(document)), left_out: document.left_out }, null, 2);

function summary(document: Document, file: string): string {
  const lines = [...countsOf(document)].map(([product, count]) => `${String(count).padStart(6)}  ${product}`);
  const rest = document.left_out.map(showLeftOut);
  return [`${file}:`, ...lines, ...(rest.length === 0 ? [] : ["", "Not imported:", ...rest]), ""].join("\n");
}

const namesShown = 3;
function showLeftOut({ product, zone, names, count, why }: LeftOut): string {
  const shown = names.slice(0, namesShown).join(", ");
  const more = count > namesShown ? ` and ${count - Math.min(namesShown, names.length)} more` : "";
  return `${String(count).padStart(6)}  ${product}${zone === undefined ? "" : ` of ${zone}`}: ${shown}${more} – ${why}`;
}

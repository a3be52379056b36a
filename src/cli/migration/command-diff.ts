import type { Command } from "commander";
import {
  groupsOf,
  isFile,
  openAccount,
  profileOf,
  rateOf,
  printProgress,
  type Profile,
} from "./command-accounts.ts";
import { compareDocuments, type ResourceDifference } from "./compare.ts";
import { compareAnswers, nameServersOf, type AnswerDifference } from "./dns-answers.ts";
import { readDocument, type Document } from "./document.ts";
import { MigrationError, printable } from "./failure.ts";
import { groups, type Group } from "./product.ts";
import { readAccount } from "./read.ts";
import { print } from "../output.ts";

interface DiffOptions {
  zone?: string[];
  include?: string;
  dns?: boolean;
  rate?: string;
  json?: boolean;
}

/** `diff`: compares two accounts, or an account and a file. Ends with 1 if something differs. */
export function registerDiffCommand(program: Command): void {
  program
    .command("diff <a> <b>")
    .description("compare two of: cloudflare, selvedge, a profile of yours, a file of import")
    .option("--zone <names...>", "the zones; those of the file, or all")
    .option("--include <groups>", `some of ${groups.join(",")}; those of the file, or all`)
    .option("--dns", "also ask the name servers of both accounts for every name")
    .option("--rate <calls>", "calls per second; 0 for no limit; by default 4, without limit for selvedge")
    .option("--json", "print JSON")
    .action(async (a: string, b: string, options: DiffOptions) => {
      const sides = await readSides([a, b], options);
      const differences = compareDocuments(sides[0].document, sides[1].document);
      const answers = options.dns === true ? await answersOf(sides) : [];
      if (options.json === true) print(JSON.stringify({ differences, answers }, null, 2));
      else {
        for (const each of differences) print(showDifference(each));
        for (const each of answers) print(showAnswer(each));
        const count = differences.length + answers.length;
        print(count === 0 ? "no differences" : `${count} differences`);
      }
      if (differences.length + answers.length > 0) process.exitCode = 1;
    });
}

interface Side {
  document: Document;
  profile: Profile | undefined;
}

async function readSides(names: readonly [string, string], options: DiffOptions): Promise<[Side, Side]> {
  const files = names.map((name) => (isFile(name) ? readDocument(name) : undefined));
  const fixed = files.find((document) => document !== undefined);
  const zones = options.zone ?? fixed?.zones.map(({ name }) => name);
  const include =
    options.include === undefined ? (fixed?.include ?? groupsOf(undefined)) : groupsOf(options.include);
  const side = async (index: 0 | 1): Promise<Side> => {
    const file = files[index];
    if (file !== undefined) return { document: narrowed(file, zones, include), profile: undefined };
    const profile = profileOf(names[index], process.env);
    const client = { callsPerSecond: rateOf(options.rate, names[index]), report: printProgress };
    const account = await openAccount(profile, zones, client, true);
    return { document: await readAccount(account, profile.baseUrl, include, () => {}), profile };
  };
  return [await side(0), await side(1)];
}

/** A file, without the zones and groups that are not compared. */
function narrowed(
  document: Document,
  zones: readonly string[] | undefined,
  include: readonly Group[],
): Document {
  const isChosen = (zone: string | undefined): boolean =>
    zone === undefined || zones?.includes(zone) !== false;
  return {
    ...document,
    include: document.include.filter((group) => include.includes(group)),
    resources: document.resources.filter(({ zone }) => isChosen(zone)),
  };
}

async function answersOf(sides: readonly [Side, Side]): Promise<AnswerDifference[]> {
  const [a, b] = sides;
  if (a.profile === undefined || b.profile === undefined)
    throw new MigrationError("Expected two profiles for --dns: a file answers no queries");
  const zones = a.document.zones.filter(({ name }) => b.document.zones.some((other) => other.name === name));
  const differences: AnswerDifference[] = [];
  for (const { name } of zones) {
    const servers = await Promise.all([nameServersOf(a, name), nameServersOf(b, name)]);
    differences.push(...(await compareAnswers(name, [a.document, b.document], servers)));
  }
  return differences;
}

const valueCharsMax = 120;
const show = (value: unknown): string =>
  value === undefined ? "nothing" : printable(JSON.stringify(value), valueCharsMax);

function showDifference({ product, zone, key, kind, fields = [] }: ResourceDifference): string {
  const where = zone === undefined || zone === key ? "" : ` (${zone})`;
  const lines = fields.map(({ field, a, b }) => `    ${printable(field)}: ${show(a)} | ${show(b)}`);
  return [`${kind}: ${product} ${printable(key)}${where}`, ...lines].join("\n");
}

const showAnswer = ({ name, type, a, b }: AnswerDifference): string =>
  `different answer: ${printable(name)} ${type}\n    ${printable(a)} | ${printable(b)}`;

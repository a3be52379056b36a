import type { Command } from "commander";
import { apply, emptySecrets, planSteps, showStep, type ApplyStep } from "./apply.ts";
import { groupsOf, openAccount, profileOf, rateOf, printProgress } from "./command-accounts.ts";
import { readDocument, type Document } from "./document.ts";
import { print } from "../output.ts";

interface ApplyOptions {
  to: string;
  include?: string;
  prune?: boolean;
  yes?: boolean;
  rate?: string;
  json?: boolean;
}

/** `apply`: makes an account like a file. */
export function registerApplyCommand(program: Command): void {
  program
    .command("apply <file>")
    .description("print the steps that make an account like a file of import; with --yes, make them")
    .option("--to <profile>", "the profile of the account to change", "selvedge")
    .option("--include <groups>", "some of the file's groups")
    .option("--prune", "also remove what the file does not have, in its zones and groups")
    .option("--yes", "make the steps")
    .option("--rate <calls>", "calls per second; 0 for no limit; by default 4, without limit for selvedge")
    .option("--json", "print JSON")
    .action(async (file: string, options: ApplyOptions) => {
      const document = chosen(readDocument(file), options.include);
      const zones = document.zones.map(({ name }) => name);
      const account = await openAccount(
        profileOf(options.to, process.env),
        zones,
        { callsPerSecond: rateOf(options.rate, options.to), report: printProgress },
        true,
      );
      const prune = options.prune === true;
      if (options.yes === true) await make(document, account, prune, options.json === true);
      else printPlan(await planSteps(document, account, prune), document, options.json === true);
    });
}

function chosen(document: Document, include: string | undefined): Document {
  if (include === undefined) return document;
  const groups = groupsOf(include);
  return { ...document, include: document.include.filter((group) => groups.includes(group)) };
}

function printPlan(steps: readonly ApplyStep[], document: Document, json: boolean): void {
  const secrets = emptySecrets(document);
  if (json) print(JSON.stringify({ steps, empty_secrets: secrets }, null, 2));
  else {
    for (const step of steps) print(showStep(step));
    printSecrets(secrets);
    const count = steps.filter(({ action }) => action !== "keep").length;
    print(count === 0 ? "nothing to do" : `${count} steps. Nothing was changed: repeat with --yes`);
  }
}

async function make(
  document: Document,
  account: Parameters<typeof apply>[1],
  prune: boolean,
  json: boolean,
): Promise<void> {
  const { done, failures } = await apply(document, account, prune, (step) => {
    if (!json) print(showStep(step));
  });
  const secrets = emptySecrets(document);
  if (json) print(JSON.stringify({ done, failures, empty_secrets: secrets }, null, 2));
  else {
    printSecrets(secrets);
    for (const { step, why } of failures) print(`failed  ${showStep(step)}: ${why}`);
    print(`${done.length} steps made, ${failures.length} failed`);
  }
  if (failures.length > 0) process.exitCode = 1;
}

function printSecrets(secrets: readonly string[]): void {
  if (secrets.length > 0) print(`secrets without a value in the file: ${secrets.join(", ")}`);
}

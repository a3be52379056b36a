import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Option, Argument, type Command } from "commander";
import { clock } from "../../platform/timers/clock.ts";
import { groupsOf, isFile, openAccount, profileOf, rateOf, printProgress } from "./command-accounts.ts";
import { readDocument, type Document } from "./document.ts";
import { exportTerraform } from "./export/terraform.ts";
import { exportZoneFiles } from "./export/zone-files.ts";
import { printable } from "./failure.ts";
import { groups } from "./product.ts";
import { readAccount } from "./read.ts";
import { print } from "../output.ts";

interface ExportOptions {
  out: string;
  zone?: string[];
  include?: string;
  rate?: string;
}
const formats = ["terraform", "zones"] as const;

/** `export`: writes an account, or a file of import, as Terraform or as zone files. */
export function registerExportCommand(program: Command): void {
  program
    .command("export")
    .addArgument(new Argument("<format>").choices(formats))
    .argument("<from>", "cloudflare, selvedge, a profile of yours, or a file of import")
    .description(
      "write an account or a file of import for Terraform (provider cloudflare 5), or as zone files",
    )
    .requiredOption("--out <folder>", "the folder to write to")
    .option("--zone <names...>", "the zones; all by default")
    .addOption(new Option("--include <groups>", `some of ${groups.join(",")}; all by default`))
    .option("--rate <calls>", "calls per second; 0 for no limit; by default 4, without limit for selvedge")
    .action(async (format: (typeof formats)[number], from: string, options: ExportOptions) => {
      const include = format === "zones" ? "dns" : options.include;
      const document = isFile(from) ? readDocument(from) : await readFrom(from, { ...options, include });
      if (format === "zones") save(options.out, exportZoneFiles(document, clock.now()));
      else {
        const { files, left } = exportTerraform(document);
        save(options.out, files);
        for (const { product, key, why } of left) print(`left out: ${product} ${printable(key)}: ${why}`);
      }
    });
}

async function readFrom(
  name: string,
  { zone, include, rate }: { zone?: string[]; include: string | undefined; rate?: string },
): Promise<Document> {
  const profile = profileOf(name, process.env);
  const account = await openAccount(profile, zone, {
    callsPerSecond: rateOf(rate, name),
    report: printProgress,
  });
  return readAccount(account, profile.baseUrl, groupsOf(include), () => {});
}

/** The names are made here, and contain no text of an account that could lead out of the folder. */
function save(folder: string, files: ReadonlyMap<string, string | Uint8Array>): void {
  for (const [name, content] of files) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { mode: 0o600 });
    print(path);
  }
}

import type Cloudflare from "cloudflare";

const AsyncFunction = (async () => {}).constructor as new (
  ...code: string[]
) => (client: typeof Cloudflare) => Promise<void>;

/** Runs code that the console shows, with the given client, whose settings are in the environment. */
export async function runTypeScript(
  text: string,
  client: typeof Cloudflare,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const names = ["CLOUDFLARE_BASE_URL", "CLOUDFLARE_API_TOKEN"] as const;
  const before = names.map((name) => process.env[name]);
  for (const name of names) process.env[name] = environment[name]!;
  try {
    await new AsyncFunction("Cloudflare", text.replace(/^import .*$/m, ""))(client);
  } finally {
    for (const [index, name] of names.entries())
      if (before[index] === undefined) delete process.env[name];
      else process.env[name] = before[index];
  }
}

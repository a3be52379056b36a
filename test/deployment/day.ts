import { randomBytes } from "node:crypto";
import sharp from "sharp";
import { blocksOf, expectedOf } from "../helpers/blocks.ts";
import type { TestPostgres } from "../helpers/postgres.ts";
import { s3Credentials, type S3Double } from "../helpers/s3.ts";
import { Machine, type Programs } from "./machine.ts";

/** The machines of docs/deployment.md, as the info strings of its blocks name them. */
export const onMachines = ["first", "second", "both", "elsewhere"];

export interface World {
  postgres: TestPostgres;
  s3: S3Double & { url: string };
  programs: Programs;
  /** Puts the package that `npm pack` makes into a folder. */
  pack?: (folder: string, upgrade: boolean) => void;
  log?: (line: string) => void;
}
/** The view of visitors and of the owner at the end of the day. */
export interface Seen {
  /** Status of the image, whether it has the bytes of the first machine's, and the number of zones, for each machine. */
  images: Record<string, [number, boolean]>;
  zones: Record<string, number>;
  versions: string[];
  blocks: number;
}

/** Follows docs/deployment.md: runs every block in its order, and checks the output that it names. */
export async function operatorsDay(world: World): Promise<Seen> {
  const variables = {
    DATABASE_URL: await world.postgres.createDatabase(),
    BLOB_URL: world.s3.url,
    ACCESS_KEY_ID: s3Credentials.accessKeyId,
    SECRET_ACCESS_KEY: s3Credentials.secretAccessKey,
  };
  const first = await Machine.create(world.programs, variables);
  const second = await Machine.create(world.programs, variables);
  const elsewhere = await Machine.create(world.programs, {
    BACKUP: `${second.root}/var/backups/selvedge/evening`,
  });
  const machines = { first, second, elsewhere };
  const picture = await sharp(randomBytes(300 * 200 * 3), { raw: { width: 300, height: 200, channels: 3 } })
    .jpeg()
    .toBuffer();
  const seen: Seen = { images: {}, zones: {}, versions: [], blocks: 0 };
  try {
    for (const machine of Object.values(machines)) {
      machine.write("photo.jpg", picture);
      world.pack?.(machine.folder, false);
    }
    if (world.pack !== undefined)
      for (const machine of [second, elsewhere]) await machine.run("npm install --global ./selvedge-*.tgz");
    await follow(world, machines, seen);
    const token = /SELVEDGE_API_TOKEN=(\w+)/.exec(await first.run("cat /etc/selvedge/environment"))![1]!;
    const photo = new URL((await first.run('echo "$photo"')).trim()).pathname;
    const original = await first.run("sha256sum < photo.served");
    for (const [name, machine] of Object.entries({ second, elsewhere })) {
      const answer = await fetch(machine.urlOf("80") + photo);
      await machine.run(`curl -fsS -o photo.served http://127.0.0.1:80${photo}`);
      seen.images[name] = [answer.status, (await machine.run("sha256sum < photo.served")) === original];
      const zones = await fetch(`${machine.urlOf("8787")}/client/v4/zones?name=shop.example`, {
        headers: { authorization: `Bearer ${token}` },
      });
      seen.zones[name] = ((await zones.json()) as { result: unknown[] }).result.length;
    }
    await Promise.all([second.run("systemctl stop selvedge"), elsewhere.run("systemctl stop selvedge")]);
    return seen;
  } finally {
    for (const machine of Object.values(machines)) machine.remove();
  }
}

async function follow(world: World, machines: Record<string, Machine>, seen: Seen): Promise<void> {
  const { first, second } = machines as { first: Machine; second: Machine };
  for (const { use, code } of blocksOf("docs/deployment.md")) {
    if (/^\w+\.\w+$/.test(use)) for (const machine of Object.values(machines)) machine.write(use, code);
    if (!onMachines.includes(use)) continue;
    if (expectedOf(code).includes("lost")) {
      first.kill();
      await until(
        second,
        "selvedge nodes --config /etc/selvedge/selvedge.toml --data-dir /var/lib/selvedge",
        "lost",
      );
    }
    if (seen.versions.length === 0 && code.includes("systemctl restart")) {
      seen.versions.push(await second.run("selvedge --version"));
      await second.run("rm -f selvedge-*.tgz");
      world.pack?.(second.folder, true);
    }
    const at = use === "both" ? [first, second] : [machines[use]!];
    for (const machine of at) {
      world.log?.(`${use}: ${code.trim().split("\n").at(0)}`);
      const output = await machine.run(code);
      const missing = expectedOf(code).filter((expected) => !output.includes(machine.localized(expected)));
      if (missing.length > 0)
        throw new Error(`Expected ${missing.join(", ")} of\n${code}\nbut got\n${output}`);
    }
    seen.blocks += 1;
    if (code.includes("host=")) {
      const host = (await first.run('echo "$host"')).trim();
      await second.run(`host=${host}`);
      await machines["elsewhere"]!.run(`host=${host}`);
    }
  }
  seen.versions.push(await second.run("selvedge --version"));
}

/** Repeats a command until its output has a word. */
async function until(machine: Machine, command: string, word: string): Promise<void> {
  const attemptsMax = 40;
  for (let attempt = 0; attempt < attemptsMax; attempt++)
    if ((await machine.run(command)).includes(word)) return;
  throw new Error(`Expected ${word} of ${command}`);
}

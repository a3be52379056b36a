import { spawn } from "node:child_process";
import { chmodSync, createReadStream, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import sharp from "sharp";
import { blocksOf } from "./helpers/blocks.ts";
import { onMachines } from "./deployment/day.ts";
import { temporaryFolder } from "./helpers/process.ts";

/** The code blocks of README and the pages run as they stand, on the ports that they name. */
interface Run {
  stdout: string;
  stderr: string;
  code: number | null;
}
const selvedge = resolve("bin/selvedge.js");
/** The working folder of the pages' commands; also contains the platform's data. */
const folder = temporaryFolder();
chmodSync(folder, 0o711); // the user of cells with Durable Objects must pass through it
let environment: NodeJS.ProcessEnv = { ...process.env };
const ended: (() => Promise<unknown>)[] = [];
/** Process groups with an open output: of commands that run, or that a test left when its time was over. */
const running = new Set<number>();

function start(
  command: string,
  args: readonly string[],
  cwd = folder,
): { done: Promise<Run>; output(): string; kill(): void } {
  // A separate process group, so that background processes end with it.
  const child = spawn(command, args, {
    cwd,
    env: environment,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const run: Run = { stdout: "", stderr: "", code: null };
  child.stdout.on("data", (chunk: Buffer) => (run.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (run.stderr += chunk.toString()));
  running.add(child.pid!);
  const done = new Promise<Run>((resolve) =>
    child.on("close", (code) => {
      running.delete(child.pid!);
      resolve({ ...run, code });
    }),
  );
  return { done, output: () => run.stdout, kill: () => void process.kill(-child.pid!, "SIGINT") };
}
const shell = async (script: string, cwd?: string): Promise<Run> =>
  start("bash", ["-euo", "pipefail", "-c", script], cwd).done;

beforeAll(async () => {
  mkdirSync(join(folder, "node_modules"));
  for (const name of readdirSync("node_modules"))
    symlinkSync(resolve("node_modules", name), join(folder, "node_modules", name));
  symlinkSync(resolve("."), join(folder, "node_modules/selvedge"));
  mkdirSync(join(folder, "bin"));
  symlinkSync(selvedge, join(folder, "bin/selvedge"));
  environment["PATH"] = [join(folder, "bin"), resolve("node_modules/.bin"), process.env["PATH"]].join(":");
  environment = { ...environment, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false", HOME: folder };
  // The command of `npm start`, with a TLS listener for the page about TLS.
  const serving = start(process.execPath, [selvedge, "serve", "--edge-tls-listen", "127.0.0.1:8443"]);
  ended.push(async () => {
    serving.kill();
    await serving.done;
  });
  const exports = await vi.waitFor(() => {
    const found = [...serving.output().matchAll(/export (\w+)=(\S+)/g)];
    expect(found.length).toBeGreaterThanOrEqual(4);
    return found;
  });
  for (const [, name, value] of exports) environment[name!] = value!;
});
afterAll(async () => {
  for (const end of ended.toReversed()) await end();
  for (const group of running) process.kill(-group, "SIGKILL");
});

it("the quickest result of README.md is a script that responds on its own host", async () => {
  const [block] = blocksOf("README.md").filter(({ use }) => use === "quick");
  const { stdout, code } = await shell(block!.code);
  expect(code).toBe(0);
  expect(stdout.split("\n").at(-2)).toBe("hello");
});

it("the tour works as written", async () => {
  const blocks = blocksOf("README.md").filter(({ use }) => use === "tour");
  expect(blocks.length).toBeGreaterThan(4);
  const tour = blocks.map(({ language, code }) =>
    language === "sh" ? code : `node --input-type=module - <<'JS'\n${code}JS\n`,
  );
  const { stdout, stderr, code } = await shell(`${tour.join("\n")}\nkill %1`, process.cwd());
  // npm may print warnings about the machine.
  const complaints = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("npm warn"));
  expect({ code, complaints }).toEqual({ code: 0, complaints: [] });
  expect(stdout.split("\n").slice(0, 5)).toEqual([
    "www.shop.example",
    "http_request_origin",
    "hello from the origin, 127.0.0.1",
    "on",
    "on",
  ]);
  expect(stdout).toContain("TXT shop.example");
  expect(stdout).toContain("\nhello\nhello from a script\n");
  expect(stdout).toContain('http.request.uri.path  =  "/app/cart"');
  expect(stdout).toContain("www.shop.example.\t1\tIN\tA\t127.0.0.1");
});

describe("the pages", () => {
  const [prelude] = blocksOf("docs/README.md");

  beforeAll(async () => {
    const origin = createServer(({ url }, response) => {
      if (url === "/photos/shoe.jpg") createReadStream(join(folder, "shoe.jpg")).pipe(response);
      else response.end("hello from the origin\n");
    });
    await once(origin.listen(3000, "127.0.0.1"), "listening");
    ended.push(async () => new Promise((closed) => origin.close(closed)));
    const picture = sharp({ create: { width: 1200, height: 900, channels: 3, background: "teal" } });
    await picture.jpeg().toFile(join(folder, "shoe.jpg"));
    await picture.png().toFile(join(folder, "stamp.png"));
  });

  const pages = readdirSync("docs").filter((file) => file.endsWith(".md") && file !== "README.md");
  it.each(pages.filter((page) => blocksOf(`docs/${page}`).length > 0))("%s", async (page) => {
    const script = [prelude!.code];
    for (const { language, use, code } of blocksOf(`docs/${page}`)) {
      if (language === "sh" && use === "run") script.push(code);
      else if (onMachines.includes(use)) expect(page).toBe("deployment.md");
      else if (use === "migrate") expect(page).toBe("migrating.md");
      else if (use === "package") expect(page).toBe("testing.md"); // test/package.test.ts runs it
      else if (use === "watch") for (const command of code.trim().split("\n")) await watch(command);
      else if (use === "serve") await checkOptions(code);
      else if (/^[\w.]+\.\w+$/.test(use)) writeFileSync(join(folder, use), code);
      else expect.fail(`No test is defined for this block of ${page}: ${language} ${use}`);
    }
    const { stdout, stderr, code } = await shell(script.join("\n"));
    expect({ code, ...(code === 0 ? {} : { stdout, stderr }) }).toEqual({ code: 0 });
    for (const [, expected] of script.join("\n").matchAll(/^#→ (.*)$/gm)) expect(stdout).toContain(expected);
  });

  /** Runs a command that does not end by itself until it reports that it has started. */
  async function watch(command: string): Promise<void> {
    // Only the format for terminals reports the start.
    const watching = start("bash", ["-c", `exec ${command.replace(/ --format \w+|$/, " --format pretty")}`]);
    await vi.waitFor(() => expect(watching.output()).toMatch(/Connected to/), { timeout: 30_000 });
    watching.kill();
    await watching.done;
  }

  /** Checks the options of a server without starting it on public addresses. */
  async function checkOptions(code: string): Promise<void> {
    const { code: status, stderr } = await shell(
      `RELAY_SECRET=${"secret".repeat(6)}\n${code.replaceAll("selvedge serve", "selvedge config print")}`,
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  }
});

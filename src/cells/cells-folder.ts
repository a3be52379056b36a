import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const prefix = "selvedge-cells-";
const ownerSocket = "owner.sock";

let made: Promise<string> | undefined;

/**
 * The folder that all cells of this program have theirs in. The program listens in it for as long as it lives, however it
 * ends: where nobody listens any more, the next program clears away. A pid would not tell, for it means nothing in
 * another container, nor after a restart of this one.
 */
export async function cellsFolder(): Promise<string> {
  const known = made;
  // A temporary folder may be cleared by others. Somebody may have seen it first.
  if (known !== undefined && !existsSync(await known) && made === known) made = undefined;
  made ??= make().catch((error: unknown) => {
    made = undefined;
    throw error;
  });
  return made;
}

async function make(): Promise<string> {
  // Short, and not in the data folder: a unix socket's path may have 107 bytes.
  const unnamed = mkdtempSync(join(tmpdir(), "selvedge-new-"));
  await listen(join(unnamed, ownerSocket));
  // It is known by its name from here on only, so that none is found before its owner listens.
  const path = unnamed.replace(/selvedge-new-(?=[^/]*$)/, prefix);
  // The cells' user goes through it, and sees only its own.
  chmodSync(unnamed, 0o711);
  renameSync(unnamed, path);
  process.once("exit", () => rmSync(path, { recursive: true, force: true }));
  void clearAway(path).catch(() => {}); // what cannot be removed is no reason to run nothing
  return path;
}

async function listen(path: string): Promise<void> {
  const server = createServer((socket) => socket.destroy()).unref();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
}

/** Removes the folders of programs that have ended without doing it themselves. */
async function clearAway(own: string): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const path = join(tmpdir(), name);
    if (!name.startsWith(prefix) || path === own || !isOwn(path)) continue;
    if (await hasEnded(join(path, ownerSocket))) rmSync(path, { recursive: true, force: true });
  }
}

/** A folder, and of this user: in the temporary folder anybody may have put anything under any name. */
function isOwn(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** Only a socket that nobody holds open any more refuses. One that cannot be asked may be alive. */
async function hasEnded(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
  });
}

import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const prefix = "selvedge-cells-";
const ownerSocket = "owner.sock";

let made: Promise<string> | undefined;

/**
 * Returns the folder that contains the folders of all cells of this program. The program listens on a socket
 * in it while it lives. If nothing listens there any more, the next program removes the folder. A pid file
 * would not do: pids mean nothing in another container or after a restart.
 */
export async function cellsFolder(): Promise<string> {
  const known = made;
  // Other programs may have cleared the temporary folder. A concurrent call may have replaced `made` already.
  if (known !== undefined && !existsSync(await known) && made === known) made = undefined;
  made ??= make().catch((error: unknown) => {
    made = undefined;
    throw error;
  });
  return made;
}

async function make(): Promise<string> {
  // In the temporary folder, because the path of a Unix socket has at most 107 bytes.
  const unnamed = mkdtempSync(join(tmpdir(), "selvedge-new-"));
  await listen(join(unnamed, ownerSocket));
  // Renamed only now, so that no other program finds the folder before this one listens.
  const path = join(tmpdir(), basename(unnamed).replace("selvedge-new-", prefix));
  // The cells' user may pass through it but not list it.
  chmodSync(unnamed, 0o711);
  renameSync(unnamed, path);
  process.once("exit", () => rmSync(path, { recursive: true, force: true }));
  clearAway(path).catch(() => {}); // a folder that cannot be removed must not prevent cells from running
  return path;
}

async function listen(path: string): Promise<void> {
  const server = createServer((socket) => socket.destroy()).unref();
  await new Promise<void>((resolve, reject) => server.on("error", reject).listen(path, resolve));
}

/** Removes the folders of programs that ended without cleaning up. */
async function clearAway(own: string): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const path = join(tmpdir(), name);
    if (!name.startsWith(prefix) || path === own || !isOwn(path)) continue;
    if (await hasEnded(join(path, ownerSocket))) rmSync(path, { recursive: true, force: true });
  }
}

/** Whether the path is a folder of this user: anyone may create any name in the temporary folder. */
function isOwn(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

/** Only a socket without a listener refuses connections. After any other error the program may be alive. */
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

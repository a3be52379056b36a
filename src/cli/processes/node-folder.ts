import { once } from "node:events";
import { mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { connectTo, isAbsent } from "../../platform/processes/protocol.ts";

const prefix = "selvedge-node-";
const ownerSocket = "owner.sock";

/**
 * The folder of the ring and the sockets between the processes of a node. It is in memory if possible: edge processes read
 * a file there for visitors, who must not wait for a disk.
 *
 * Its owner listens at a socket in it for as long as it lives. The folder of a node that was killed is recognized by
 * sockets that no process listens at, whichever container the node was in; process ids would not show that.
 */
export class NodeFolder {
  readonly path: string;
  readonly #owner: Server;

  private constructor(path: string, owner: Server) {
    this.path = path;
    this.#owner = owner;
  }

  /** Creates a folder in the first of `parents` that takes one, and removes there those of nodes that were killed. */
  static async create(parents: readonly string[] = ["/dev/shm", tmpdir()]): Promise<NodeFolder> {
    const owner = createServer((socket) => socket.destroy());
    // Under another name until its owner listens, so that no other node takes it for a dead one's.
    const unnamed = makeFolder(parents);
    owner.listen(join(unnamed, ownerSocket)).unref();
    await once(owner, "listening");
    const parent = dirname(unnamed);
    const path = join(parent, `${prefix}${basename(unnamed).slice(1 + prefix.length)}`);
    renameSync(unnamed, path);
    await removeDead(parent);
    return new NodeFolder(path, owner);
  }

  remove(): void {
    this.#owner.close();
    rmSync(this.path, { recursive: true, force: true });
  }
}

function makeFolder(parents: readonly string[]): string {
  const [first, ...others] = parents;
  try {
    return mkdtempSync(join(first!, `.${prefix}`));
  } catch (error) {
    if (others.length === 0) throw error;
    return makeFolder(others);
  }
}

async function removeDead(parent: string): Promise<void> {
  for (const name of readdirSync(parent).filter((each) => each.startsWith(prefix))) {
    const folder = join(parent, name);
    if (await isDead(folder)) rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether no process listens at any socket of a folder, neither its supervisor nor a process that it has left. */
async function isDead(folder: string): Promise<boolean> {
  try {
    const sockets = readdirSync(folder).filter((name) => name.endsWith(".sock"));
    if (!sockets.includes(ownerSocket)) return false;
    for (const name of sockets) if (await isHeard(join(folder, name))) return false;
    return true;
  } catch {
    return false; // another user's, or another node removes it
  }
}

async function isHeard(socket: string): Promise<boolean> {
  try {
    (await connectTo(socket)).destroy();
    return true;
  } catch (error) {
    return !isAbsent(error);
  }
}

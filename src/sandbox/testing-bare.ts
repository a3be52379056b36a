import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import { WebSocket } from "ws";
import { CellFolder } from "./process/cell-folder.ts";
import { cellHeaders } from "./protocol.ts";
import { cellsFolder } from "./process/cells-folder.ts";
import { encodeMetadata } from "./gateway/exchange.ts";
import { launch } from "./process/launch.ts";
import { cellDefaults } from "./settings.ts";
import { CellProcess } from "./process/process.ts";

/**
 * For tests: a workerd process with the system worker and without a gateway. Scripts are loaded without a
 * wrapper, so they can do everything that a script can do after it has taken over its isolate.
 */
export class BareCell {
  readonly #folder: CellFolder;
  readonly #secret: string;
  readonly #gateway: Server;
  readonly #process: CellProcess;

  private constructor(folder: CellFolder, secret: string, gateway: Server, process: CellProcess) {
    this.#folder = folder;
    this.#secret = secret;
    this.#gateway = gateway;
    this.#process = process;
  }

  /** `scripts` has the scripts by id, in the form in which the system worker receives them. */
  static async boot(scripts: Record<string, unknown>): Promise<BareCell> {
    const folder = new CellFolder(await cellsFolder());
    const secret = randomUUID();
    folder.write(secret, [], cellDefaults);
    const gateway = createServer({ requireHostHeader: false }, (request, response) => {
      const { pathname } = new URL(request.url ?? "", "http://gateway");
      const script = scripts[decodeURIComponent(pathname.slice("/script/".length))];
      if (script === undefined) response.writeHead(404).end();
      else response.end(JSON.stringify(script));
    });
    await new Promise<void>((resolve) => gateway.listen(folder.gatewaySocket, resolve));
    folder.allowConnect(folder.gatewaySocket);
    const process = new CellProcess(launch(folder.path), () => {});
    await process.listening;
    return new BareCell(folder, secret, gateway, process);
  }

  async workflowStream(): Promise<WebSocket> {
    const headers = {
      [cellHeaders.metadata]: encodeMetadata({ selvedgeRun: "", workflowStream: this.#secret }),
    };
    const socket = new WebSocket(`ws+unix:${this.#folder.cellSocket}:/`, {
      headers,
      perMessageDeflate: false,
    });
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    return socket;
  }

  async close(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    this.#gateway.close();
    this.#gateway.closeAllConnections();
    this.#folder.remove();
  }
}

/** A script of one module, in the form that the system worker receives. */
export const bareScript = (code: string): object => ({
  mainModule: "main.js",
  modules: { "main.js": { js: code } },
  compatibilityDate: "2026-11-01",
  compatibilityFlags: [],
  env: {},
  systemEntrypoints: [],
  isDispatched: false,
});

import { connect } from "node:net";
import type { Logger } from "pino";
import type { OriginPath } from "./origin-path.ts";
import type { Relays } from "./relays.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

const intervalMs = 5000;
const timeoutMs = 3000;

/** An excluded path and the port of its origin. */
export interface SetAside {
  path: OriginPath;
  port: number;
}

/**
 * Checks paths that no request uses: an excluded path returns only after its end responds, and connections to
 * relays are opened before the first request. Of the processes of a node, main alone connects to origins for it.
 */
export class Probes {
  readonly #relays: Relays;
  readonly #setAside: () => SetAside[];
  readonly #logger: Pick<Logger, "warn" | "info">;
  readonly #isMain: boolean;
  readonly #silentRelays = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    relays: Relays,
    setAside: () => SetAside[],
    logger: Pick<Logger, "warn" | "info">,
    isMain = true,
  ) {
    this.#isMain = isMain;
    this.#relays = relays;
    this.#setAside = setAside;
    this.#logger = logger;
  }

  start(): void {
    unawaited(this.#round());
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  async #round(): Promise<void> {
    const relays = this.#relays.list.map(async (relay) => {
      const isUp = await this.#relays.ping(relay, timeoutMs);
      if (isUp === !this.#silentRelays.has(relay.name)) return;
      if (isUp) {
        this.#silentRelays.delete(relay.name);
        this.#logger.info({ relay: relay.name }, "a relay responds again");
      } else {
        this.#silentRelays.add(relay.name);
        this.#logger.warn({ relay: relay.name, url: relay.url }, "a relay does not respond");
      }
    });
    await Promise.all(relays);
    const paths = this.#setAside().map(async ({ path, port }) => {
      const { relay, address } = path;
      // Another main process may not know that the path is excluded.
      if (relay === undefined && !this.#isMain) return path.reportExclusion(performance.now());
      const isUp = relay === undefined ? await accepts(address, port) : !this.#silentRelays.has(relay.name);
      if (!isUp) path.stayAway(2 * intervalMs, performance.now());
    });
    await Promise.all(paths);
    // Jittered, so that nodes that started together do not probe together.
    this.#timer = setTimeout(
      () => {
        unawaited(this.#round());
      },
      intervalMs * (0.8 + Math.random() * 0.4),
    );
    this.#timer.unref();
  }
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const end = (isUp: boolean) => (): void => {
      resolve(isUp);
      socket.destroy();
    };
    socket.on("connect", end(true)).on("error", end(false)).on("timeout", end(false));
  });
}

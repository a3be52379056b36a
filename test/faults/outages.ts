import { setTimeout as delay } from "node:timers/promises";
import { startMovingAddress, type MovingAddress } from "../helpers/moving-address.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startStandby, type Standby } from "../helpers/postgres-standby.ts";

/** PostgreSQL behind an address that can move, with a standby if the outage is a failover. */
export interface Scene {
  postgres: TestPostgres;
  address: MovingAddress;
  standby: Standby | undefined;
  /** The port of the server that has the data. */
  port: number;
  databaseUrl: string;
  stop(): Promise<void>;
}

export interface Outage {
  hasStandby?: boolean;
  begin: (scene: Scene) => Promise<void>;
  /** Resolves when clients can reach a server that accepts writes. */
  end: (scene: Scene) => Promise<void>;
}

const promote = async (scene: Scene, isCut: boolean): Promise<void> => {
  const { standby, address } = scene;
  await standby!.promote();
  scene.port = standby!.port;
  address.moveTo(scene.port, isCut);
};

/** The ways in which PostgreSQL is away for a while. */
export const outages = {
  restart: { begin: ({ postgres }) => postgres.end(), end: ({ postgres }) => postgres.start() },
  crash: { begin: ({ postgres }) => postgres.crash(), end: ({ postgres }) => postgres.start() },
  standstill: {
    begin: async ({ postgres }) => postgres.pause(),
    end: async ({ postgres }) => postgres.resume(),
  },
  unreachable: {
    begin: async ({ address }) => address.moveTo(undefined, true),
    end: async ({ address, port }) => address.moveTo(port, false),
  },
  failover: {
    hasStandby: true,
    begin: ({ postgres }) => postgres.crash(),
    end: (scene) => promote(scene, true),
  },
  // The machine of the primary is gone, so the nodes get no message that their connections have ended.
  silentFailover: {
    hasStandby: true,
    begin: async ({ postgres }) => postgres.pause(),
    end: (scene) => promote(scene, false),
  },
} satisfies Record<string, Outage>;

export async function startScene({ hasStandby = false }: Outage): Promise<Scene> {
  const postgres = await startPostgres();
  const { port } = postgres;
  const url = await postgres.createDatabase();
  const address = await startMovingAddress(port);
  const standby = hasStandby ? await startStandby(postgres) : undefined;
  return {
    ...{ postgres, port, address, standby, databaseUrl: address.urlOf(url) },
    async stop() {
      await address.close();
      await standby?.stop();
      postgres.resume();
      await postgres.stop();
    },
  };
}

/** Until `isTrue`; resolves with the milliseconds since `startMs`. Throws after `msMax`. */
export async function elapsedUntil(
  isTrue: () => Promise<boolean> | boolean,
  startMs: number,
  msMax: number,
): Promise<number> {
  while (!(await isTrue())) {
    if (performance.now() - startMs > msMax) throw new Error(`Expected it within ${msMax} ms`);
    await delay(10);
  }
  return performance.now() - startMs;
}

import type {
  Capability,
  Contributions,
  BoundCapability,
  Platform,
  ServicesOf,
  Work,
  Opened,
} from "./capability.ts";
import type { Declaration } from "./declaration.ts";
import { declarations } from "./declarations.ts";
import { endsWithin } from "./platform/util/ends-within.ts";
import { handlerPhases } from "./edge/request/handlers.ts";
import type { OwnProcess } from "./platform/processes/own-process.ts";

export interface Running<S> {
  services: S;
  /** Asks the clients of all listeners to open their next connections elsewhere. */
  announceEnd: () => void;
  /** Reads files of the configuration again. */
  reload: () => Promise<void>;
  /** Releases the leases and claims that other nodes can take over. Later calls return the promise of the first. */
  giveBack: () => Promise<void>;
  /** Ends everything, in the reverse order. Work in progress has `deadlineMs` for each of listeners and runs. */
  close: (deadlineMs: number) => Promise<void>;
}

/**
 * Starts capabilities in the order of their needs: creates all of them, loads all, opens all listeners, then
 * starts their own work. If any of them fails, ends what has begun and throws the failure.
 */
export async function start<const C extends readonly Capability[]>(
  capabilities: C,
  platform: Platform,
): Promise<Running<ServicesOf<C>>> {
  const ordered = inOrderOfNeeds(partsOf(capabilities, platform.own.role));
  const begun = new Map<Capability, BoundCapability<object>>();
  const listening: Opened[] = [];
  const working: Work[] = [];
  let givingBack: Promise<void> | undefined;
  const giveBack = (): Promise<void> => (givingBack ??= giveBackAll(working, platform));
  const close = async (deadlineMs: number): Promise<void> => {
    const faults: unknown[] = [];
    const attempt = async (ending: () => Promise<void> | void): Promise<void> => {
      try {
        await ending();
      } catch (error) {
        faults.push(error);
      }
    };
    await giveBack();
    await Promise.all(working.map((work) => attempt(() => work.stop(deadlineMs))));
    await Promise.all(listening.map((opened) => attempt(() => opened.close(deadlineMs))));
    for (const each of [...begun.values()].reverse()) await attempt(() => each.close());
    if (faults.length > 0) throw new AggregateError(faults, "Parts of the platform could not be closed");
  };
  try {
    for (const each of ordered) begun.set(each, await each.begin(servicesOf(each.needs, begun), platform));
    const contributions = contributionsOf(ordered, [...begun.values()]);
    const keep = <T>(kept: T[], each: T | void): void => {
      if (each !== undefined) kept.push(each);
    };
    for (const each of begun.values()) await each.load(contributions);
    for (const each of begun.values()) keep(listening, await each.listen(contributions));
    for (const each of platform.own.role === "edge" ? [] : begun.values()) {
      const work = await each.run();
      keep(working, typeof work === "function" ? { stop: work } : work);
    }
  } catch (error) {
    await close(0).catch((fault: unknown) =>
      platform.logger.warn({ err: fault }, "a failed start could not be undone completely"),
    );
    throw error;
  }
  return {
    services: servicesOf(ordered, begun) as ServicesOf<C>,
    async reload() {
      for (const opened of listening) opened.reload?.();
      for (const each of begun.values()) await each.reload();
    },
    giveBack,
    announceEnd: () => listening.forEach((opened) => opened.announceEnd?.()),
    close,
  };
}

/** The capabilities of a process. */
export function partsOf(capabilities: readonly Capability[], role: OwnProcess["role"]): Capability[] {
  if (role !== "edge") return capabilities.filter(({ processes }) => processes !== "edge");
  return capabilities.flatMap((each) => (each.processes === "main" ? (each.atEdges ?? []) : [each]));
}

/** Maximum time to release leases. Leases that could not be released expire. */
const giveBackMsMax = 2000;

async function giveBackAll(working: readonly Work[], { logger }: Platform): Promise<void> {
  const faults: unknown[] = [];
  const each = async (work: Work): Promise<void> => {
    try {
      await work.giveBack?.();
    } catch (error) {
      faults.push(error);
    }
  };
  const isDone = await endsWithin(giveBackMsMax, Promise.all(working.map(each)));
  if (!isDone || faults.length > 0)
    logger.warn({ err: faults[0] }, "leases could not be released; they will expire");
}

/** Sorts capabilities after those that they need, otherwise as listed. Throws if one is missing or needs itself. */
export function inOrderOfNeeds(capabilities: readonly Capability[]): Capability[] {
  const ordered = new Set<Capability>();
  const listed = new Set(capabilities);
  const add = (each: Capability, path: readonly Capability[]): void => {
    if (ordered.has(each)) return;
    const names = [...path, each].map(({ name }) => name);
    if (path.includes(each)) throw new Error(`Capabilities need each other: ${names.join(" → ")}`);
    if (!listed.has(each))
      throw new Error(`Expected the capability ${each.name}, which ${path.at(-1)!.name} needs, in the list`);
    for (const need of each.needs) add(need, [...path, each]);
    refuseUnknownDeclaration(each);
    ordered.add(each);
  };
  for (const each of capabilities) add(each, []);
  return [...ordered];
}

/** Throws if the declaration of a capability is not listed, because its settings and tables would be missing. */
function refuseUnknownDeclaration({ name, declares }: Capability): void {
  if (declares === undefined || declarations.some((each: Declaration) => each === declares)) return;
  throw new Error(`Expected the declaration of ${name} in src/declarations.ts. Run: npm run generate`);
}

/** The services that these capabilities created. Throws if two have the same name. */
function servicesOf(
  capabilities: readonly Capability[],
  begun: ReadonlyMap<Capability, BoundCapability<object>>,
): object {
  const services: Record<string, unknown> = {};
  for (const each of capabilities)
    for (const [name, service] of Object.entries(begun.get(each)!.created)) {
      if (name in services) throw new Error(`Two capabilities create the service ${name}`);
      services[name] = service;
    }
  return services;
}

function contributionsOf(
  capabilities: readonly Capability[],
  begun: readonly BoundCapability<object>[],
): Contributions {
  return {
    operations: begun.flatMap(({ operations }) => operations),
    idParameters: new Set(capabilities.flatMap(({ idParameters }) => idParameters)),
    apiUpgrade: begun.find(({ apiUpgrade }) => apiUpgrade !== undefined)?.apiUpgrade,
    edgeHandlers: begun
      .flatMap(({ edgeHandlers }) => edgeHandlers)
      .sort((a, b) => handlerPhases.indexOf(a.phase) - handlerPhases.indexOf(b.phase)),
    bindings: Object.assign({}, ...begun.map(({ bindings }) => bindings)),
    health: Object.assign({}, ...begun.map(({ health }) => health)),
    async reset() {
      for (const each of begun) await each.reset();
    },
    due: Object.fromEntries(
      capabilities.flatMap(({ name }, index) => {
        const { due } = begun[index]!;
        return due === undefined ? [] : [[name, due]];
      }),
    ),
    expire: async () =>
      Object.assign({}, ...(await Promise.all(begun.map(async (each) => each.expire())))) as Record<
        string,
        number
      >,
    metrics: async () => (await Promise.all(begun.map((each) => each.metrics()))).flat(),
  };
}

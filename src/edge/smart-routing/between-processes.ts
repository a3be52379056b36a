import type { MessageBus } from "../../platform/processes/message-bus.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { Analytics, Tally } from "./analytics.ts";
import type { PathObservations } from "./origin-path.ts";
import type { GroupOrigin, KnownGroup, SmartRouting } from "./routing.ts";

const topic = "smart routing";
const everyMs = 500;

/** Observations of one process. */
interface RoutingUpdate {
  groups: (GroupOrigin & { paths: Record<string, PathObservations> })[];
  /** Results of zones, from an edge process for main. */
  results: [zoneId: string, Tally][];
}

/**
 * The processes of a node choose paths by the observations of all: each sends the others its own, twice a second, and an
 * ejection at once. Main has the results of all zones.
 */
export function shareObservations(
  routing: SmartRouting,
  analytics: Analytics,
  bus: MessageBus,
  { role }: OwnProcess,
  isZone: (id: string) => boolean,
): void {
  if (role === "single") return;
  const changed = new Set<KnownGroup>();
  let timer: NodeJS.Timeout | undefined;
  const publish = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const groups = [...changed].map(({ group, ...origin }) => ({
      ...origin,
      paths: Object.fromEntries(
        group.paths.flatMap((path) => {
          const observations = path.takeObservations();
          return observations === undefined ? [] : [[path.name, observations]];
        }),
      ),
    }));
    changed.clear();
    const results = role === "edge" ? analytics.take() : [];
    unawaited(bus.publish(topic, { groups, results } satisfies RoutingUpdate));
  };
  routing.onObservation = (group, isUrgent) => {
    changed.add(group);
    if (isUrgent) publish();
    else timer ??= setTimeout(publish, everyMs).unref();
  };
  bus.subscribe<RoutingUpdate>(topic, ({ groups, results }, relay) => {
    for (const { paths, ...origin } of groups) if (isZone(origin.zoneId)) routing.merge(origin, paths);
    for (const [zoneId, tally] of results)
      if (role === "main" && isZone(zoneId)) analytics.zone(zoneId).merge(tally);
    relay();
  });
}

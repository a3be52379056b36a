import type { ProcessNotes } from "../../platform/processes/notes.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { Analytics, Tally } from "./analytics.ts";
import type { PathNews } from "./origin-path.ts";
import type { GroupOrigin, KnownGroup, SmartRouting } from "./routing.ts";

const topic = "smart routing";
const everyMs = 500;

/** Observations of one process. */
interface RoutingNews {
  groups: (GroupOrigin & { paths: Record<string, PathNews> })[];
  /** Results of zones, from an edge process for main. */
  results: [zoneId: string, Tally][];
}

/**
 * The processes of a node choose paths by the observations of all: each tells the others its own, twice a second, and an
 * ejection at once. Main has the results of all zones.
 */
export function shareObservations(
  routing: SmartRouting,
  analytics: Analytics,
  notes: ProcessNotes,
  { role }: OwnProcess,
  isZone: (id: string) => boolean,
): void {
  if (role === "single") return;
  const changed = new Set<KnownGroup>();
  let timer: NodeJS.Timeout | undefined;
  const tell = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const groups = [...changed].map(({ group, ...origin }) => ({
      ...origin,
      paths: Object.fromEntries(
        group.paths.flatMap((path) => {
          const news = path.takeNews();
          return news === undefined ? [] : [[path.name, news]];
        }),
      ),
    }));
    changed.clear();
    const results = role === "edge" ? analytics.take() : [];
    unawaited(notes.tell(topic, { groups, results } satisfies RoutingNews));
  };
  routing.onNews = (group, isUrgent) => {
    changed.add(group);
    if (isUrgent) tell();
    else timer ??= setTimeout(tell, everyMs).unref();
  };
  notes.on<RoutingNews>(topic, ({ groups, results }, relay) => {
    for (const { paths, ...origin } of groups) if (isZone(origin.zoneId)) routing.hear(origin, paths);
    for (const [zoneId, tally] of results)
      if (role === "main" && isZone(zoneId)) analytics.zone(zoneId).merge(tally);
    relay();
  });
}

import type { ComponentChildren } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { useGet } from "../core/cache.ts";
import { useShortcuts } from "../core/keys.ts";
import { isAllowed, ScopeContext } from "../core/permissions.ts";
import { href, navigate } from "../core/router.ts";
import { permissionsOnZone } from "../core/session.ts";
import { ZoneContext, type Zone } from "../core/zone.ts";
import { Notice, State, type Tone } from "../parts/layout.tsx";
import { Bars, Empty, Failure } from "../parts/states.tsx";
import { LinkTabs } from "../parts/tabs.tsx";
import { Denied } from "./denied.tsx";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";

const tones: Record<Zone["status"], Tone> = {
  active: "ok",
  pending: "warn",
  initializing: "warn",
  moved: "bad",
};

export const ZoneState = ({ zone }: { zone: Zone }) =>
  zone.paused ? <State tone="warn">paused</State> : <State tone={tones[zone.status]}>{zone.status}</State>;

const zonePattern = "/:account/zones/:zone";

/** A zone that is not active yet is read again, because the platform looks at its name servers by itself. */
const pendingEveryMs = 2000;

interface ZoneFrameProps {
  account: string;
  name: string;
  route: Route;
  children: ComponentChildren;
}

/** The head and the tabs of a zone. Screens within it have the zone from useZone(), and the permissions on it. */
export function ZoneFrame({ account, name, route, children }: ZoneFrameProps) {
  const [isActive, setActive] = useState(false);
  const found = useGet<Zone[]>(
    `/zones?name=${encodeURIComponent(name)}&account.id=${account}`,
    isActive ? {} : { everyMs: pendingEveryMs },
  );
  const zone = found.data?.[0];
  useEffect(() => setActive(zone?.status === "active"), [zone?.status]);
  const [can, setCan] = useState<{ of: string; list: string[] } | undefined>(undefined);
  useLayoutEffect(() => {
    if (zone !== undefined)
      permissionsOnZone(zone.id).then(
        (list) => setCan({ of: zone.id, list }),
        () => setCan({ of: zone.id, list: [] }),
      );
  }, [zone?.id]);
  const base = `/${account}/zones/${name}`;
  const pathOf = ({ pattern }: Route): string => pattern.replace(zonePattern, base);
  const outer = useContext(ScopeContext);
  const scope = useMemo(
    () => (can === undefined ? outer : { accountId: account, zone: { id: can.of, can: can.list } }),
    [account, can],
  );
  // A token for all zones has on each of them at least what it has on all.
  const isKnown = can !== undefined || (isAllowed("zone:read", outer) && isAllowed(route.needs, outer));
  const shown = !isKnown
    ? []
    : routes.filter(
        ({ tab, pattern, needs }) =>
          tab !== undefined && pattern.startsWith(zonePattern) && isAllowed(needs, scope),
      );
  useShortcuts(
    shown.flatMap((each) =>
      each.keys === undefined
        ? []
        : [{ keys: each.keys, label: each.title, group: "Zone", run: () => navigate(pathOf(each)) }],
    ),
  );
  if (zone === undefined) {
    if (found.failure) return <Failure failure={found.failure} onRetry={found.reload} />;
    return found.data === undefined ? <Bars /> : <NoZone name={name} account={account} />;
  }
  if (!isKnown) return <Bars />;
  const tabs = shown.map((each) => ({ key: each.pattern, name: each.tab!, href: href(pathOf(each)) }));
  const current =
    tabs.findLast(({ key }) => route.pattern === key || route.pattern.startsWith(`${key}/`))?.key ??
    route.pattern;
  return (
    <ZoneContext.Provider value={zone}>
      <ScopeContext.Provider value={scope}>
        <header class="resource-head">
          <p class="where">
            <a href={href(`/${account}/zones`)}>Zones</a>
          </p>
          <div class="resource-name">
            <strong>{zone.name}</strong>
            <ZoneState zone={zone} />
          </div>
          <LinkTabs label={`Screens of ${zone.name}`} tabs={tabs} current={current} />
        </header>
        {zone.paused && (
          <Notice tone="warn">This zone is paused: visitors are sent to its origins, past the edge.</Notice>
        )}
        <div class="screen">{isAllowed(route.needs, scope) ? children : <Denied needs={route.needs!} />}</div>
      </ScopeContext.Provider>
    </ZoneContext.Provider>
  );
}

const NoZone = ({ name, account }: { name: string; account: string }) => (
  <Empty
    icon="zones"
    title={`No zone ${name} that this token may read`}
    actions={
      <a class="button" href={href(`/${account}/zones`)}>
        All zones
      </a>
    }
  >
    <p>The zone is not in this account, or the token needs Zone: Read on it.</p>
  </Empty>
);

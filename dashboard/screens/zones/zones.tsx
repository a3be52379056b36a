import { useState } from "preact/hooks";
import { count } from "../../core/format.ts";
import { useShortcuts } from "../../core/keys.ts";
import { useRows } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import type { Zone } from "../../core/zone.ts";
import { Button } from "../../parts/button.tsx";
import { Grid } from "../../parts/grid.tsx";
import { Filter } from "../../parts/filter.tsx";
import { Page, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { ZoneState } from "../../shell/zone-frame.tsx";
import { AddZone } from "./add-zone.tsx";

/** The zones of the account. */
export default function Zones({ account }: ScreenProps) {
  const [filter, setFilter] = useSearch("name");
  const query = new URLSearchParams({
    "account.id": account,
    order: "name",
    ...(filter !== "" && { name: `contains:${filter}` }),
  });
  const zones = useRows<Zone>(`/zones?${query}`, 50);
  const [isAdding, setAdding] = useState(false);
  const refusal = useRefusal()("POST /zones");
  useShortcuts([{ keys: "n", label: "Add a zone", run: () => setAdding(true) }]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setAdding(true)}>
      Add a zone
    </Button>
  );
  return (
    <Page
      title="Zones"
      about={zones.count === undefined ? undefined : `${count(zones.count)} in this account`}
      actions={add}
    >
      <div class="toolbar">
        <Filter label="Filter zones by name" value={filter} onChange={setFilter} />
      </div>
      <Loaded
        of={zones.first}
        empty={
          filter === "" ? (
            <Empty icon="zones" title="No zone yet" actions={add}>
              <p>A zone is a domain with its DNS records, rules and routes.</p>
            </Empty>
          ) : (
            <Empty icon="search" title={`No zone has "${filter}" in its name`} />
          )
        }
      >
        {() => (
          <Grid
            label="Zones"
            rows={zones}
            keyOf={({ id }) => id}
            onOpen={({ name }) => navigate(`/${account}/zones/${name}`)}
            columns={[
              {
                key: "name",
                title: "Name",
                width: "minmax(160px, 2fr)",
                cell: ({ name }) => <a href={href(`/${account}/zones/${name}`)}>{name}</a>,
              },
              { key: "state", title: "State", width: "120px", cell: (zone) => <ZoneState zone={zone} /> },
              {
                key: "plan",
                title: "Plan",
                width: "minmax(100px, 1fr)",
                cell: ({ plan }) => plan.name,
                isExtra: true,
              },
              {
                key: "changed",
                title: "Changed",
                width: "120px",
                cell: ({ modified_on }) => <Time at={modified_on} />,
                isExtra: true,
              },
            ]}
          />
        )}
      </Loaded>
      {isAdding && <AddZone account={account} onClose={() => setAdding(false)} />}
    </Page>
  );
}

import { useGet } from "../../core/cache.ts";
import { count } from "../../core/format.ts";
import { isAllowed } from "../../core/permissions.ts";
import { href } from "../../core/router.ts";
import type { Zone } from "../../core/zone.ts";
import { Code } from "../../code/as-code.tsx";
import { Card, Copyable, Figure, Page, State, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { LastChanges } from "./changes.tsx";
import { InstallationFigures } from "./figures.tsx";
import { ZoneState } from "../../shell/zone-frame.tsx";

interface Node {
  id: string;
  name: string;
  state: "running" | "stopped" | "lost";
  version: string;
  started_on: string;
  seen_on: string;
  change_seq: number | null;
  object_shards: number | null;
}

const commands = (base: string, account: string): string => `export CLOUDFLARE_BASE_URL=${base}/client/v4
export CLOUDFLARE_ACCOUNT_ID=${account}
export CLOUDFLARE_API_TOKEN=…   # create one on the Tokens screen
curl -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" "$CLOUDFLARE_BASE_URL/zones"`;

/** The account's resources, the nodes, and the last changes. */
export default function Overview({ account }: ScreenProps) {
  const scope = { accountId: account };
  return (
    <Page title="Overview" about={<Copyable text={account} />}>
      <div class="stack">
        <Figures account={account} />
        {isAllowed("account_settings:read", scope) && <InstallationFigures account={account} />}
        <div class="cards wide">
          <Zones account={account} />
          {isAllowed("account_settings:read", scope) && <LastChanges account={account} />}
          {isAllowed("account_settings:read", scope) && <Nodes account={account} />}
        </div>
        <Card title="From the command line">
          <Code text={commands(location.origin, account)} label="Commands" />
        </Card>
      </div>
    </Page>
  );
}

function Figures({ account }: { account: string }) {
  const scope = { accountId: account };
  const listed = (needs: string, path: string) => (isAllowed(needs, scope) ? path : undefined);
  const zones = useGet<Zone[]>(`/zones?account.id=${account}&per_page=5`);
  const records = useGet<{ record_usage: number }>(
    listed("account_settings:read", `/accounts/${account}/dns_records/usage`),
  );
  const scripts = useGet<unknown[]>(listed("workers_scripts:read", `/accounts/${account}/workers/scripts`));
  const queues = useGet<unknown[]>(listed("queues:read", `/accounts/${account}/queues`));
  const spaces = useGet<unknown[]>(listed("workers_kv:read", `/accounts/${account}/storage/kv/namespaces`));
  const figure = (name: string, value: number | undefined, path?: string) => (
    <Figure
      name={name}
      value={
        value === undefined ? (
          "–"
        ) : path === undefined ? (
          count(value)
        ) : (
          <a href={href(`/${account}/${path}`)}>{count(value)}</a>
        )
      }
    />
  );
  return (
    <div class="figures fives">
      {figure("Zones", zones.info.total_count, "zones")}
      {figure("DNS records", records.data?.record_usage)}
      {figure("Scripts", scripts.data?.length, "scripts")}
      {figure("Queues", queues.info.total_count ?? queues.data?.length, "queues")}
      {figure("Key-value namespaces", spaces.info.total_count ?? spaces.data?.length, "kv")}
    </div>
  );
}

function Zones({ account }: { account: string }) {
  const zones = useGet<Zone[]>(`/zones?account.id=${account}&per_page=5`);
  return (
    <Card title="Zones" actions={<a href={href(`/${account}/zones`)}>All zones</a>}>
      <Loaded
        of={zones}
        rows={5}
        empty={
          <Empty
            icon="zones"
            title="No zone yet"
            actions={
              <a class="button primary" href={href(`/${account}/zones`)}>
                Add a zone
              </a>
            }
          />
        }
      >
        {(list) => (
          <Table
            label="Zones"
            rows={list}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "Name",
                isWide: true,
                cell: ({ name }) => <a href={href(`/${account}/zones/${name}`)}>{name}</a>,
              },
              { title: "State", cell: (zone) => <ZoneState zone={zone} /> },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

function Nodes({ account }: { account: string }) {
  const nodes = useGet<Node[]>(`/accounts/${account}/edge/nodes`, { everyMs: 10_000 });
  return (
    <Card title="Nodes">
      <Loaded of={nodes} rows={2}>
        {(list) => (
          <Table
            label="Nodes"
            rows={list}
            keyOf={({ id }) => id}
            columns={[
              { title: "Name", isWide: true, cell: ({ name }) => name },
              {
                title: "State",
                cell: ({ state }) => (
                  <State tone={state === "running" ? "ok" : state === "lost" ? "bad" : "off"}>{state}</State>
                ),
              },
              { title: "Version", isExtra: true, cell: ({ version }) => version },
              { title: "Started", isExtra: true, cell: ({ started_on }) => <Time at={started_on} /> },
              ...(list.some(({ object_shards }) => object_shards !== null) ? [shards] : []),
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

/** Where nodes divide the Durable Objects and the databases. */
const shards = {
  title: "Object shards",
  isExtra: true,
  cell: ({ object_shards }: Node) => count(object_shards ?? 0),
};

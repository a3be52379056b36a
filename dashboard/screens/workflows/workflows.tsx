import { count, plural } from "../../core/format.ts";
import { useRows } from "../../core/pages.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import { Filter } from "../../parts/filter.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Page, State, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import type { Workflow } from "./workflow.ts";

const addressOf = (account: string, { name }: Workflow): string =>
  `/${account}/workflows/${encodeURIComponent(name)}`;

const columnsOf = (account: string): Column<Workflow>[] => [
  {
    key: "name",
    title: "Name",
    width: "minmax(140px, 2fr)",
    cell: (workflow) => <a href={href(addressOf(account, workflow))}>{workflow.name}</a>,
  },
  {
    key: "script",
    title: "Script",
    width: "minmax(100px, 1fr)",
    isExtra: true,
    cell: ({ script_name }) => (
      <a href={href(`/${account}/scripts/${encodeURIComponent(script_name)}`)}>{script_name}</a>
    ),
  },
  {
    key: "running",
    title: "In flight",
    width: "96px",
    isNumber: true,
    cell: ({ instances }) =>
      count(instances.queued + instances.running + instances.waiting + instances.waitingForPause),
  },
  {
    key: "errored",
    title: "Errored",
    width: "104px",
    isNumber: true,
    cell: (workflow) =>
      workflow.instances.errored === 0 ? (
        "0"
      ) : (
        <a
          href={href(`${addressOf(account, workflow)}?status=errored`)}
          aria-label={`${plural(workflow.instances.errored, "errored instance")} of ${workflow.name}`}
        >
          <State tone="bad">{count(workflow.instances.errored)}</State>
        </a>
      ),
  },
  {
    key: "last",
    title: "Last started",
    width: "120px",
    isExtra: true,
    cell: ({ triggered_on }) =>
      triggered_on === null ? <span class="faint">never</span> : <Time at={triggered_on} />,
  },
];

/** The workflows of the account. */
export default function Workflows({ account }: ScreenProps) {
  const [search, setSearch] = useSearch("search");
  const query = search === "" ? "" : `?search=${encodeURIComponent(search)}`;
  const rows = useRows<Workflow>(`/accounts/${account}/workflows${query}`, 100, { everyMs: 3000 });
  return (
    <Page title="Workflows">
      <div class="toolbar">
        <Filter label="Filter workflows by name" value={search} onChange={setSearch} />
      </div>
      <Loaded
        of={rows.first}
        empty={
          search === "" ? (
            <Empty icon="workflows" title="No workflow yet">
              <p>
                Name one in the configuration of a script, and <code>wrangler deploy</code> makes it.
              </p>
            </Empty>
          ) : (
            <Empty icon="search" title="No workflow has this name" />
          )
        }
      >
        {() => (
          <Grid
            label="Workflows"
            columns={columnsOf(account)}
            rows={rows}
            keyOf={({ id }) => id}
            onOpen={(workflow) => navigate(addressOf(account, workflow))}
          />
        )}
      </Loaded>
    </Page>
  );
}

import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { count, timeOf } from "../../core/format.ts";
import { useShortcuts } from "../../core/keys.ts";
import { useRows } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Button } from "../../parts/button.tsx";
import { Filter } from "../../parts/filter.tsx";
import { TextField } from "../../parts/form.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Page, State, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import type { Backlog, Queue } from "./queue-types.ts";

const op = "POST /accounts/{account_id}/queues";
/** Only the queues in view are asked, one call each. */
const backlogEveryMs = 15_000;

/** The messages that wait in a queue, and the age of the oldest on hover. */
function Waiting({ account, queue }: { account: string; queue: string }) {
  const path = `/accounts/${account}/queues/${queue}/metrics`;
  const { data, failure } = useGet<Backlog>(path, { everyMs: backlogEveryMs });
  if (data === undefined) return <span class="faint">{failure === undefined ? "…" : "–"}</span>;
  const { backlog_count: messages, oldest_message_timestamp_ms: oldest } = data;
  return (
    <span title={messages === 0 ? undefined : `The oldest is from ${timeOf(oldest)}`}>{count(messages)}</span>
  );
}

const columnsOf = (account: string): Column<Queue>[] => [
  {
    key: "name",
    title: "Name",
    width: "minmax(140px, 2fr)",
    cell: ({ queue_id, queue_name }) => <a href={href(`/${account}/queues/${queue_id}`)}>{queue_name}</a>,
  },
  {
    key: "state",
    title: "Delivery",
    width: "minmax(100px, 1fr)",
    cell: ({ settings }) =>
      settings.delivery_paused ? <State tone="warn">paused</State> : <State tone="ok">on</State>,
  },
  {
    key: "waiting",
    title: "Waiting",
    width: "96px",
    isNumber: true,
    cell: ({ queue_id }) => <Waiting account={account} queue={queue_id} />,
  },
  {
    key: "producers",
    title: "Producers",
    width: "96px",
    isNumber: true,
    isExtra: true,
    cell: ({ producers_total_count }) => producers_total_count,
  },
  {
    key: "consumers",
    title: "Consumers",
    width: "96px",
    isNumber: true,
    isExtra: true,
    cell: ({ consumers_total_count }) => consumers_total_count,
  },
  {
    key: "created",
    title: "Created",
    width: "120px",
    isExtra: true,
    cell: ({ created_on }) => <Time at={created_on} />,
  },
];

/** The queues of the account. */
export default function Queues({ account }: ScreenProps) {
  const [search, setSearch] = useSearch("name");
  const path = `/accounts/${account}/queues${search === "" ? "" : `?name=${encodeURIComponent(search)}`}`;
  const rows = useRows<Queue>(path, 100);
  const [isAdding, setAdding] = useState(false);
  const refusal = useRefusal()(op);
  useShortcuts([{ keys: "n", label: "New queue", run: () => refusal === undefined && setAdding(true) }]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setAdding(true)}>
      New queue
    </Button>
  );
  return (
    <Page title="Queues" actions={add}>
      <div class="toolbar">
        <Filter label="Filter queues by name" value={search} onChange={setSearch} />
      </div>
      <Loaded
        of={rows.first}
        empty={
          search === "" ? (
            <Empty icon="queues" title="No queue yet" actions={add}>
              <p>
                Or <code>wrangler queues create orders</code>.
              </p>
            </Empty>
          ) : (
            <Empty icon="search" title="No queue has this name" />
          )
        }
      >
        {() => (
          <Grid
            label="Queues"
            columns={columnsOf(account)}
            rows={rows}
            keyOf={({ queue_id }) => queue_id}
            onOpen={({ queue_id }) => navigate(`/${account}/queues/${queue_id}`)}
          />
        )}
      </Loaded>
      {isAdding && <NewQueue account={account} onClose={() => setAdding(false)} />}
    </Page>
  );
}

function NewQueue({ account, onClose }: { account: string; onClose: () => void }) {
  const [name, setName] = useState("");
  return (
    <FormDialog<Queue>
      title="New queue"
      call={{ op, params: { account_id: account }, body: { queue_name: name } }}
      submit="Create the queue"
      done="The queue was created"
      invalidates={[`/accounts/${account}/queues`]}
      onClose={onClose}
      onDone={({ queue_id }) => navigate(`/${account}/queues/${queue_id}`)}
    >
      <TextField
        label="Name"
        name="queue_name"
        value={name}
        onChange={setName}
        hint="Letters, digits, - and _"
        isMono
        autofocus
      />
    </FormDialog>
  );
}

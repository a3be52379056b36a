import { useState } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { useAction } from "../../core/action.ts";
import { useGet, type Query } from "../../core/cache.ts";
import { bytes, count, span } from "../../core/format.ts";
import { useShortcuts } from "../../core/keys.ts";
import { useRefusal } from "../../core/permissions.ts";
import { navigate } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Switch } from "../../parts/form.tsx";
import { Card, Figure, Page, Time } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { Consumers } from "./consumers.tsx";
import { DeadLetters } from "./dead-letters.tsx";
import { MessagesCard } from "./messages.tsx";
import type { Backlog, Queue } from "./queue-types.ts";
import { SendDialog } from "./send.tsx";

const one = "/accounts/{account_id}/queues/{queue_id}";
type Open = "send" | "purge" | "delete" | undefined;

/** One queue: its depth, its consumers, its messages. */
export default function QueueScreen({ account, params }: ScreenProps) {
  const path = `/accounts/${account}/queues/${params["queue"]!}`;
  const queue = useGet<Queue>(path);
  return (
    <Loaded of={queue}>{(data) => <Content key={data.queue_id} account={account} queue={data} />}</Loaded>
  );
}

function Content({ account, queue }: { account: string; queue: Queue }) {
  const path = `/accounts/${account}/queues/${queue.queue_id}`;
  const params = { account_id: account, queue_id: queue.queue_id };
  const backlog = useGet<Backlog>(`${path}/metrics`, { everyMs: 2000 });
  const [open, setOpen] = useState<Open>(undefined);
  const refusal = useRefusal();
  const edit = refusal(`POST ${one}/messages`);
  const close = (): void => setOpen(undefined);
  useShortcuts([{ keys: "n", label: "Send a message", run: () => edit === undefined && setOpen("send") }]);
  return (
    <Page
      title={queue.queue_name}
      up={{ name: "Queues", path: `/${account}/queues` }}
      actions={
        <>
          <Menu
            label="More"
            items={[
              {
                label: "Purge all messages",
                icon: "trash",
                kind: "bad",
                refusal: edit,
                onSelect: () => setOpen("purge"),
              },
              {
                label: "Delete the queue",
                icon: "trash",
                kind: "bad",
                refusal: edit,
                onSelect: () => setOpen("delete"),
              },
            ]}
          />
          <Button icon="plus" kind="primary" refusal={edit} onPress={() => setOpen("send")}>
            Send a message
          </Button>
        </>
      }
    >
      <div class="stack">
        <Depth backlog={backlog} />
        <Delivery queue={queue} params={params} path={path} />
        <Consumers account={account} queue={queue} />
        <DeadLetters account={account} queue={queue} backlog={backlog.data} />
        <MessagesCard
          account={account}
          queue={queue}
          backlog={backlog.data}
          onPurge={() => setOpen("purge")}
        />
      </div>
      {open === "send" && <SendDialog account={account} queue={queue} onClose={close} />}
      {open === "purge" && (
        <Confirm
          title={`Purge ${queue.queue_name}`}
          submit="Purge"
          typed={queue.queue_name}
          call={{ op: `POST ${one}/purge`, params, body: { delete_messages_permanently: true } }}
          done="The queue was purged"
          invalidates={[path]}
          onClose={close}
        >
          <p>All of its messages are deleted for good, also those that a consumer works on.</p>
        </Confirm>
      )}
      {open === "delete" && (
        <Confirm
          title={`Delete ${queue.queue_name}`}
          submit="Delete"
          typed={queue.queue_name}
          call={{ op: `DELETE ${one}`, params }}
          done="The queue was deleted"
          invalidates={[`/accounts/${account}/queues`]}
          onDone={() => navigate(`/${account}/queues`)}
          onClose={close}
        >
          <p>Its messages are deleted with it. Scripts that send to it get errors.</p>
        </Confirm>
      )}
    </Page>
  );
}

function Depth({ backlog }: { backlog: Query<Backlog> }) {
  return (
    <Loaded of={backlog} rows={2}>
      {(data) => (
        <div class="figures">
          <Figure name="Messages" value={count(data.backlog_count)} />
          <Figure name="Size" value={bytes(data.backlog_bytes)} />
          <Figure
            name="Oldest message"
            value={
              data.oldest_message_timestamp_ms === 0 ? "–" : <Time at={data.oldest_message_timestamp_ms} />
            }
          />
        </div>
      )}
    </Loaded>
  );
}

function Delivery({
  queue,
  params,
  path,
}: {
  queue: Queue;
  params: Readonly<Record<string, string>>;
  path: string;
}) {
  const { delivery_paused: isPaused, delivery_delay: delay, message_retention_period: kept } = queue.settings;
  const when =
    queue.consumers.length === 0
      ? "wait until a consumer is added"
      : delay === 0
        ? "are delivered at once"
        : `wait ${span(delay)} before they are delivered`;
  const op = `PATCH ${one}`;
  const action = useAction({ done: "The delivery was changed", invalidates: [path], tellsFailure: true });
  const call = (paused: boolean) => ({ op, params, body: { settings: { delivery_paused: paused } } });
  return (
    <Card>
      <div class="setting">
        <Switch
          label="Delivery to the consumer"
          hint={`Messages ${when}, and are kept for ${span(kept)}.`}
          isOn={!isPaused}
          refusal={useRefusal()(op)}
          onChange={(on) => void action.run(call(!on))}
        />
        <AsCode call={call(!isPaused)} />
      </div>
    </Card>
  );
}

import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { span } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Card } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Table } from "../../parts/table.tsx";
import { ConsumerForm, consumersOf } from "./consumer-form.tsx";
import type { Consumer, Queue } from "./queue-types.ts";

const scriptOf = ({ script_name, script }: Consumer): string | undefined => script_name ?? script;

type Open = { kind: "add" } | { kind: "edit" | "remove"; consumer: Consumer };

/** The consumer of a queue: a script, or a client that pulls. A queue has one at most. */
export function Consumers({ account, queue }: { account: string; queue: Queue }) {
  const [open, setOpen] = useState<Open | undefined>(undefined);
  const refusal = useRefusal()(`POST ${consumersOf}`);
  const close = (): void => setOpen(undefined);
  const params = { account_id: account, queue_id: queue.queue_id };
  return (
    <Card
      title="Consumer"
      actions={
        queue.consumers.length === 0 && (
          <Button icon="plus" refusal={refusal} onPress={() => setOpen({ kind: "add" })}>
            Add a consumer
          </Button>
        )
      }
    >
      {queue.consumers.length === 0 ? (
        <p>
          The queue has none, so its messages wait. A script with a <code>queue</code> handler, or a client
          that pulls, can be one.
        </p>
      ) : (
        <Table
          label="Consumers"
          rows={queue.consumers}
          keyOf={({ consumer_id }) => consumer_id}
          columns={[
            {
              title: "Consumer",
              isWide: true,
              cell: (consumer) => {
                const script = scriptOf(consumer);
                return script === undefined ? (
                  "pulled over HTTP"
                ) : (
                  <a href={href(`/${account}/scripts/${encodeURIComponent(script)}`)}>{script}</a>
                );
              },
            },
            { title: "Batch", isNumber: true, cell: ({ settings }) => settings.batch_size },
            { title: "Retries", isNumber: true, cell: ({ settings }) => settings.max_retries },
            { title: "Retry after", isExtra: true, cell: ({ settings }) => span(settings.retry_delay) },
            {
              title: "Dead letters go to",
              cell: ({ dead_letter_queue: name }) => <QueueLink account={account} name={name} />,
            },
          ]}
          actions={(consumer) => (
            <Menu
              label="Actions of the consumer"
              items={[
                { label: "Edit", icon: "edit", refusal, onSelect: () => setOpen({ kind: "edit", consumer }) },
                {
                  label: "Remove",
                  icon: "trash",
                  kind: "bad",
                  refusal,
                  onSelect: () => setOpen({ kind: "remove", consumer }),
                },
              ]}
            />
          )}
        />
      )}
      {open?.kind === "add" && <ConsumerForm account={account} queue={queue} onClose={close} />}
      {open?.kind === "edit" && (
        <ConsumerForm account={account} queue={queue} consumer={open.consumer} onClose={close} />
      )}
      {open?.kind === "remove" && (
        <Confirm
          title="Remove the consumer"
          submit="Remove"
          call={{
            op: `DELETE ${consumersOf}/{consumer_id}`,
            params: { ...params, consumer_id: open.consumer.consumer_id },
          }}
          done="The consumer was removed"
          invalidates={[`/accounts/${account}/queues`]}
          onClose={close}
        >
          <p>Messages wait in the queue until it has another one.</p>
        </Confirm>
      )}
    </Card>
  );
}

/** The way to the queue of a name. */
function QueueLink({ account, name }: { account: string; name: string }) {
  const queues = useGet<Queue[]>(name === "" ? undefined : `/accounts/${account}/queues?per_page=100`);
  const found = queues.data?.find(({ queue_name }) => queue_name === name);
  if (name === "") return <span class="faint">nowhere</span>;
  return found === undefined ? (
    <code>{name}</code>
  ) : (
    <a href={href(`/${account}/queues/${found.queue_id}`)}>{name}</a>
  );
}

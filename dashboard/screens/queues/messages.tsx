import { useEffect, useState } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { useAction } from "../../core/action.ts";
import { clockOf } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Card, Time } from "../../parts/layout.tsx";
import { Failure } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { bodyOf, type Backlog, type PeekedMessage, type Queue } from "./queue-types.ts";

const op = "POST /accounts/{account_id}/queues/{queue_id}/messages/peek";
const purgeOp = "POST /accounts/{account_id}/queues/{queue_id}/purge";
const shownMax = 100;
const bodyCharactersMax = 500;

interface MessagesProps {
  account: string;
  queue: Queue;
  backlog: Backlog | undefined;
  onPurge: () => void;
}

/** A look into the queue. */
interface Look {
  messages: readonly PeekedMessage[];
  at: number;
  /** The backlog at that time. */
  state: string;
}

/**
 * The first messages of a queue. Peeking takes no message away from the consumer. The list follows a queue without a
 * consumer, where rows only join at its end. Others change all the time: the list stays, with its time.
 */
export function MessagesCard({ account, queue, backlog, onPurge }: MessagesProps) {
  const [look, setLook] = useState<Look | undefined>(undefined);
  const messages = look?.messages;
  const refusal = useRefusal();
  const action = useAction();
  const call = {
    op,
    params: { account_id: account, queue_id: queue.queue_id },
    body: { batch_size: shownMax },
  };
  const state = JSON.stringify(backlog);
  const peek = async (): Promise<void> => {
    const answer = await action.run<{ messages: PeekedMessage[] }>(call);
    if (answer !== undefined) setLook({ messages: answer.result.messages, at: Date.now(), state });
  };
  const isOld = look !== undefined && look.state !== state;
  const follows = queue.consumers.length === 0;
  useEffect(() => {
    if (isOld && follows && action.failure === undefined) void peek();
  }, [state]);
  return (
    <Card
      title="Messages"
      actions={
        <>
          {isOld && !follows && <span class="faint">as of {clockOf(look.at)}; the queue has changed</span>}
          <AsCode call={call} />
          {messages !== undefined && messages.length > 0 && (
            <Button icon="trash" kind="bad" refusal={refusal(purgeOp)} onPress={onPurge}>
              Purge all messages
            </Button>
          )}
          <Button icon="search" refusal={refusal(op)} isBusy={action.isBusy} onPress={() => void peek()}>
            Peek
          </Button>
        </>
      }
    >
      {action.failure !== undefined ? (
        <Failure failure={action.failure} onRetry={() => void peek()} />
      ) : messages === undefined ? (
        <p class="faint">
          A look at the first {shownMax} messages leases none: the consumer still gets them.
        </p>
      ) : messages.length === 0 ? (
        <p>No message waits.</p>
      ) : (
        <Table
          label="Messages"
          rows={messages}
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Body",
              isWide: true,
              cell: (message) => <code>{bodyOf(message).slice(0, bodyCharactersMax)}</code>,
            },
            { title: "Type", isExtra: true, cell: ({ metadata }) => metadata["CF-Content-Type"] ?? "–" },
            { title: "Attempts", isNumber: true, cell: ({ attempts }) => attempts },
            { title: "Sent", cell: ({ timestamp_ms }) => <Time at={timestamp_ms} /> },
          ]}
        />
      )}
    </Card>
  );
}

import { useState } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { useAction } from "../../core/action.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Card, Time } from "../../parts/layout.tsx";
import { Failure } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { bodyOf, type PeekedMessage, type Queue } from "./queue-types.ts";

const op = "POST /accounts/{account_id}/queues/{queue_id}/messages/peek";
const shownMax = 100;
const bodyCharactersMax = 500;

/** The first messages of a queue. Peeking takes no message away from the consumer. */
export function MessagesCard({ account, queue }: { account: string; queue: Queue }) {
  const [messages, setMessages] = useState<readonly PeekedMessage[] | undefined>(undefined);
  const action = useAction();
  const call = {
    op,
    params: { account_id: account, queue_id: queue.queue_id },
    body: { batch_size: shownMax },
  };
  const peek = async (): Promise<void> => {
    const answer = await action.run<{ messages: PeekedMessage[] }>(call);
    if (answer !== undefined) setMessages(answer.result.messages);
  };
  return (
    <Card
      title="Messages"
      actions={
        <>
          <AsCode call={call} />
          <Button icon="search" refusal={useRefusal()(op)} isBusy={action.isBusy} onPress={() => void peek()}>
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

import { Dialog } from "../../parts/dialog.tsx";
import { ActionForm, SelectField, TextField, useForm } from "../../parts/form.tsx";
import type { Queue } from "./queue-types.ts";

interface SendForm {
  type: "json" | "text";
  text: string;
  delay: string;
}

/** Sends a message to a queue. */
export function SendDialog({
  account,
  queue,
  onClose,
}: {
  account: string;
  queue: Queue;
  onClose: () => void;
}) {
  const { values, set, field } = useForm<SendForm>({
    type: "json",
    text: '{ "hello": "queue" }',
    delay: "",
  });
  const { body, fault } = bodyFrom(values.type, values.text);
  return (
    <Dialog title={`Send to ${queue.queue_name}`} kind="side" onClose={onClose}>
      <ActionForm
        call={{
          op: "POST /accounts/{account_id}/queues/{queue_id}/messages",
          params: { account_id: account, queue_id: queue.queue_id },
          body: {
            body,
            content_type: values.type,
            ...(values.delay !== "" && { delay_seconds: Number(values.delay) }),
          },
        }}
        submit="Send"
        done="The message was sent"
        refusal={fault}
        invalidates={[`/accounts/${account}/queues/${queue.queue_id}`]}
        onCancel={onClose}
        onDone={onClose}
      >
        <SelectField
          label="Type"
          value={values.type}
          options={["json", "text"]}
          onChange={(type) => set("type", type)}
        />
        <TextField
          label="Body"
          name="body"
          error={fault}
          value={values.text}
          onChange={(text) => set("text", text)}
          rows={12}
          isMono
          autofocus
        />
        <TextField
          label="Delay in seconds"
          {...field("delay", "delay_seconds")}
          type="number"
          hint="Empty: the delay of the queue"
          isNarrow
        />
      </ActionForm>
    </Dialog>
  );
}

function bodyFrom(type: "json" | "text", text: string): { body: unknown; fault?: string } {
  if (type === "text") return { body: text };
  try {
    return { body: JSON.parse(text) as unknown };
  } catch {
    return { body: text, fault: "This is not JSON" };
  }
}

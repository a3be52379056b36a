import { FormDialog } from "../../parts/form-dialog.tsx";
import { SelectField, TextField, useForm } from "../../parts/form.tsx";
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
    <FormDialog
      title={`Send to ${queue.queue_name}`}
      size="side"
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
      onClose={onClose}
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
    </FormDialog>
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

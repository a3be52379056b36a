import { FormDialog } from "../../parts/form-dialog.tsx";
import { TextField, useForm } from "../../parts/form.tsx";

/** Parses a text as JSON; returns a fault if it is not JSON, and no value if it is empty. */
export function jsonOf(text: string): { value?: unknown; fault?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { fault: "This is not JSON" };
  }
}

interface EventProps {
  params: Readonly<Record<string, string>>;
  path: string;
  onClose: () => void;
}

/** Sends an event to an instance. An event that arrives early is kept until the code waits for it. */
export function EventDialog({ params, path, onClose }: EventProps) {
  const { values, set, field } = useForm({ type: "", payload: "" });
  const { value, fault } = jsonOf(values.payload);
  return (
    <FormDialog
      title="Send an event"
      call={{
        op: "POST /accounts/{account_id}/workflows/{workflow_name}/instances/{instance_id}/events",
        params,
        body: { type: values.type, payload: value ?? null },
      }}
      submit="Send"
      done="The event was sent"
      refusal={values.type === "" ? "give its type" : fault}
      invalidates={[path]}
      onClose={onClose}
    >
      <TextField label="Type" {...field("type")} isMono autofocus />
      <TextField
        label="Payload"
        name="payload"
        error={fault}
        value={values.payload}
        onChange={(payload) => set("payload", payload)}
        hint="JSON, or empty"
        rows={6}
        isMono
      />
    </FormDialog>
  );
}

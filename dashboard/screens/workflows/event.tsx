import { FormDialog } from "../../parts/form-dialog.tsx";
import { TextField, useForm } from "../../parts/form.tsx";

/** Text as JSON; the fault if it is none. Empty text is no value. */
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

/** Sends an event to an instance. One that comes before it is waited for is kept. */
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

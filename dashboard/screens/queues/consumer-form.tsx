import { useGet } from "../../core/cache.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { SelectField, TextField, useForm } from "../../parts/form.tsx";
import type { Script } from "../scripts/script.ts";
import type { Consumer, Queue } from "./queue-types.ts";

export const consumersOf = "/accounts/{account_id}/queues/{queue_id}/consumers";

interface ConsumerFormProps {
  account: string;
  queue: Queue;
  /** The consumer that is changed; without one, a new one is added. */
  consumer?: Consumer;
  onClose: () => void;
}

/** The settings of both types of consumers, with the texts of their fields. */
const fields = [
  { key: "batch_size", label: "Batch size", of: ["worker", "http_pull"] },
  { key: "max_wait_time_ms", label: "Batch waits, ms", of: ["worker"] },
  { key: "max_concurrency", label: "Batches at once", of: ["worker"] },
  { key: "visibility_timeout_ms", label: "Lease, ms", of: ["http_pull"] },
  { key: "max_retries", label: "Retries", of: ["worker", "http_pull"] },
  { key: "retry_delay", label: "Retry after, s", of: ["worker", "http_pull"] },
] as const;

/** Adds or changes the consumer of a queue. Empty settings get the defaults. */
export function ConsumerForm({ account, queue, consumer, onClose }: ConsumerFormProps) {
  const scripts = useGet<Script[]>(`/accounts/${account}/workers/scripts`);
  const queues = useGet<Queue[]>(`/accounts/${account}/queues?per_page=100`);
  const { values, set, field } = useForm({
    type: consumer?.type ?? "worker",
    script: consumer?.script_name ?? consumer?.script ?? "",
    dead: consumer?.dead_letter_queue ?? "",
    ...initial(consumer),
  });
  const handlers = (scripts.data ?? []).filter(({ handlers: each }) => each.includes("queue"));
  const shown = fields.filter(({ of }) => (of as readonly string[]).includes(values.type));
  const settings = Object.fromEntries(
    shown.flatMap(({ key }) => (values[key] === "" ? [] : [[key, Number(values[key])]])),
  );
  const isScript = values.type === "worker";
  const path = consumer === undefined ? `POST ${consumersOf}` : `PUT ${consumersOf}/{consumer_id}`;
  return (
    <FormDialog
      title={consumer === undefined ? `Add a consumer to ${queue.queue_name}` : "Edit the consumer"}
      call={{
        op: path,
        params: {
          account_id: account,
          queue_id: queue.queue_id,
          ...(consumer && { consumer_id: consumer.consumer_id }),
        },
        body: {
          type: values.type,
          ...(isScript && { script_name: values.script }),
          ...((values.dead !== "" || consumer !== undefined) && { dead_letter_queue: values.dead }),
          settings,
        },
      }}
      submit={consumer === undefined ? "Add the consumer" : "Save"}
      done={consumer === undefined ? "The consumer was added" : "The consumer was saved"}
      refusal={isScript && values.script === "" ? "choose a script" : undefined}
      invalidates={[`/accounts/${account}/queues`]}
      onClose={onClose}
    >
      <SelectField
        label="Type"
        value={values.type}
        onChange={(type) => set("type", type)}
        options={[
          { value: "worker", label: "A script: its queue handler gets batches" },
          { value: "http_pull", label: "A client that pulls over HTTP" },
        ]}
      />
      {isScript && (
        <SelectField
          label="Script"
          {...field("script", "script_name")}
          options={[
            { value: "", label: "Choose a script" },
            ...new Set([...handlers.map(({ id }) => id), values.script].filter((each) => each !== "")),
          ]}
          hint={handlers.length === 0 && "No script of this account has a queue handler."}
        />
      )}
      <SelectField
        label="Messages that fail go to"
        {...field("dead", "dead_letter_queue")}
        options={[
          { value: "", label: "nowhere: they are deleted" },
          ...(queues.data ?? [])
            .map(({ queue_name: name }) => name)
            .filter((name) => name !== queue.queue_name),
        ]}
      />
      <div class="form-row">
        {shown.map(({ key, label }) => (
          <TextField key={key} label={label} {...field(key, `settings.${key}`)} type="number" />
        ))}
      </div>
      <p class="hint">An empty field gets the default.</p>
    </FormDialog>
  );
}

function initial(consumer: Consumer | undefined): Record<(typeof fields)[number]["key"], string> {
  const of = (key: (typeof fields)[number]["key"]): string => String(consumer?.settings[key] ?? "");
  return {
    batch_size: of("batch_size"),
    max_wait_time_ms: of("max_wait_time_ms"),
    max_concurrency: of("max_concurrency"),
    visibility_timeout_ms: of("visibility_timeout_ms"),
    max_retries: of("max_retries"),
    retry_delay: of("retry_delay"),
  };
}

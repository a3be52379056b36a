import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import { href } from "../../../core/router.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, SelectField, Switch, TextField, useForm, type FormState } from "../../../parts/form.tsx";
import { Icon } from "../../../parts/icon.tsx";
import { Notice, Time } from "../../../parts/layout.tsx";
import {
  dataFields,
  hasPriority,
  isProxiable,
  placeholders,
  recordTypes,
  shortName,
  ttls,
  type DnsRecord,
} from "./record.ts";

interface Values {
  type: string;
  name: string;
  content: string;
  data: Record<string, string>;
  priority: string;
  ttl: string;
  proxied: boolean;
  comment: string;
  tags: string;
}

const valuesOf = (record: DnsRecord | undefined, zone: string): Values => ({
  type: record?.type ?? "A",
  name: record === undefined ? "" : shortName(record.name, zone),
  content: record?.content ?? "",
  data: Object.fromEntries(Object.entries(record?.data ?? {}).map(([name, value]) => [name, String(value)])),
  priority: String(record?.priority ?? 10),
  ttl: String(record?.ttl ?? 1),
  proxied: record?.proxied ?? false,
  comment: record?.comment ?? "",
  tags: record?.tags.join(", ") ?? "",
});

function bodyOf({ type, name, content, data, priority, ttl, proxied, comment, tags }: Values): object {
  const parts = dataFields[type];
  const value =
    parts === undefined
      ? { content }
      : {
          data: Object.fromEntries(
            parts.map(({ name, isNumber }) => [
              name,
              isNumber === true ? Number(data[name] ?? 0) : (data[name] ?? ""),
            ]),
          ),
        };
  return {
    type,
    name: name.trim() === "" ? "@" : name.trim(),
    ...value,
    ...(hasPriority(type) && { priority: Number(priority) }),
    ttl: Number(ttl),
    ...(isProxiable(type) && { proxied }),
    ...(comment !== "" && { comment }),
    ...(tags.trim() !== "" && {
      tags: tags
        .split(",")
        .map((tag) => tag.trim())
        .filter((tag) => tag !== ""),
    }),
  };
}

interface RecordPanelProps {
  /** Undefined for a new one. */
  record: DnsRecord | undefined;
  onDone: (record: DnsRecord) => void;
  onClose: () => void;
}

/** The form of a record, beside the table. Its fields and hints depend on the type. */
export function RecordPanel({ record, onDone, onClose }: RecordPanelProps) {
  const zone = useZone();
  const form = useForm(valuesOf(record, zone.name));
  const [isDeleting, setDeleting] = useState(false);
  const [seen, setSeen] = useState(record?.modified_on);
  const condition = { headers: { "if-match": `"${seen}"` } };
  const records = `/zones/${zone.id}/dns_records`;
  const params = { zone_id: zone.id, ...(record !== undefined && { dns_record_id: record.id }) };
  const call =
    record === undefined
      ? { op: "POST /zones/{zone_id}/dns_records", params, body: bodyOf(form.values) }
      : {
          op: "PUT /zones/{zone_id}/dns_records/{dns_record_id}",
          params,
          ...condition,
          body: bodyOf(form.values),
        };
  if (isDeleting && record !== undefined)
    return (
      <Confirm
        title="Delete the record"
        submit="Delete"
        call={{ op: "DELETE /zones/{zone_id}/dns_records/{dns_record_id}", params, ...condition }}
        done={`${record.type} ${record.name} was deleted`}
        invalidates={[records]}
        onDone={() => onDone(record)}
        onClose={() => setDeleting(false)}
      >
        <p>
          {record.type} <code>{record.name}</code> with the value <code>{record.content}</code>
        </p>
      </Confirm>
    );
  return (
    <Dialog
      title={record === undefined ? "Add a record" : `${record.type} ${shortName(record.name, zone.name)}`}
      kind="side"
      onClose={onClose}
    >
      {record !== undefined && (
        <ChangedElsewhere
          record={record}
          seen={seen!}
          onSeen={setSeen}
          onTake={(now) => form.replace(valuesOf(now, zone.name))}
        />
      )}
      <ActionForm<DnsRecord>
        call={call}
        submit={record === undefined ? "Add the record" : "Save"}
        done={record === undefined ? "The record was added" : "The record was saved"}
        invalidates={[records]}
        onCancel={onClose}
        onDone={onDone}
      >
        <Fields form={form} isNew={record === undefined} zone={zone.name} />
      </ActionForm>
      {record !== undefined && (
        <div class="row">
          <Button icon="trash" kind="bad" onPress={() => setDeleting(true)}>
            Delete
          </Button>
          <span class="faint">
            changed <Time at={record.modified_on} />
          </span>
          <span class="spacer" />
          <a class="button" href={href(`/${zone.account.id}/audit?days=30&resource=${record.id}`)}>
            <Icon name="audit" />
            History
          </a>
        </div>
      )}
    </Dialog>
  );
}

/** Reloads the record while it is edited, and warns when another person has changed it. */
function ChangedElsewhere({
  record,
  seen,
  onSeen,
  onTake,
}: {
  record: DnsRecord;
  /** The time of the last change that the person knows. */
  seen: string;
  onSeen: (time: string) => void;
  onTake: (now: DnsRecord) => void;
}) {
  const zone = useZone();
  const { data } = useGet<DnsRecord>(`/zones/${zone.id}/dns_records/${record.id}`, { everyMs: 5000 });
  if (data === undefined || data.modified_on <= seen) return null;
  return (
    <Notice
      tone="warn"
      actions={
        <>
          <Button
            onPress={() => {
              onSeen(data.modified_on);
              onTake(data);
            }}
          >
            Take theirs
          </Button>
          <Button onPress={() => onSeen(data.modified_on)}>Keep mine</Button>
        </>
      }
    >
      This record was changed meanwhile: {data.type} <code>{data.content}</code>
      {data.proxied ? ", proxied" : ", DNS only"}
    </Notice>
  );
}

function Fields({
  form: { values, set, field },
  isNew,
  zone,
}: {
  form: FormState<Values>;
  isNew: boolean;
  zone: string;
}) {
  const parts = dataFields[values.type];
  return (
    <>
      <div class="form-row">
        <SelectField label="Type" {...field("type")} options={recordTypes} isDisabled={!isNew} />
        <TextField
          label="Name"
          {...field("name")}
          placeholder="@"
          hint={`@ is ${zone}`}
          autofocus={isNew}
          isMono
        />
      </div>
      {parts === undefined ? (
        <TextField
          label={values.type === "A" ? "IPv4 address" : values.type === "AAAA" ? "IPv6 address" : "Value"}
          {...field("content")}
          placeholder={placeholders[values.type] ?? ""}
          autofocus={!isNew}
          isMono
          {...(values.type === "TXT" && { rows: 3 })}
        />
      ) : (
        <div class="form-row">
          {parts.map(({ name, label, placeholder }) => (
            <TextField
              key={name}
              label={label}
              name={`data.${name}`}
              value={values.data[name] ?? ""}
              onChange={(value) => set("data", { ...values.data, [name]: value })}
              placeholder={placeholder ?? ""}
              isMono
            />
          ))}
        </div>
      )}
      <div class="form-row">
        {hasPriority(values.type) && <TextField label="Priority" {...field("priority")} type="number" />}
        <SelectField
          label="TTL"
          {...field("ttl")}
          options={
            ttls.some(({ value }) => value === values.ttl)
              ? ttls
              : [...ttls, { value: values.ttl, label: `${values.ttl} s` }]
          }
        />
      </div>
      {isProxiable(values.type) && (
        <Switch
          label="Proxied"
          hint={
            values.proxied
              ? "Visitors come to the edge, where rules and scripts run."
              : "DNS only: visitors get the value itself."
          }
          isOn={values.proxied}
          onChange={(on) => set("proxied", on)}
        />
      )}
      <TextField label="Comment" {...field("comment")} />
      <TextField label="Tags" {...field("tags")} hint="name:value, separated by commas" isMono />
    </>
  );
}

import { useState } from "preact/hooks";
import { useAction } from "../../../core/action.ts";
import { useGet } from "../../../core/cache.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useZone } from "../../../core/zone.ts";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { SelectField, Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Card, Page, State, Time, type Tone } from "../../../parts/layout.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";

interface Pack {
  id: string;
  type: string;
  hosts: string[];
  status: "initializing" | "pending_validation" | "active" | "expired";
  certificate_authority: string;
  validity_days: number;
  certificates: { expires_on: string; issuer: string; signature: string }[];
  validation_errors?: { message: string }[];
  next_issue_on?: string;
}
interface Custom {
  id: string;
  hosts: string[];
  issuer: string;
  status: "active" | "expired";
  expires_on: string;
}

const tones: Record<string, Tone> = {
  active: "ok",
  expired: "bad",
  initializing: "warn",
  pending_validation: "warn",
};
type Open = "order" | "upload" | { kind: "pack" | "custom"; id: string; hosts: string[] } | undefined;

/** Certificates of the zone: those that are issued here, and uploaded ones. */
export default function Tls() {
  const zone = useZone();
  const packs = useGet<Pack[]>(`/zones/${zone.id}/ssl/certificate_packs?per_page=50`, { everyMs: 15_000 });
  const customs = useGet<Custom[]>(`/zones/${zone.id}/custom_certificates?per_page=50`);
  const universal = useGet<{ enabled: boolean }>(`/zones/${zone.id}/ssl/universal/settings`);
  const [open, setOpen] = useState<Open>(undefined);
  const refusal = useRefusal();
  const action = useAction({ done: "Saved", invalidates: [`/zones/${zone.id}/ssl`], tellsFailure: true });
  const close = (): void => setOpen(undefined);
  const edit = refusal("POST /zones/{zone_id}/ssl/certificate_packs/order");
  const order = (
    <Button icon="plus" kind="primary" refusal={edit} onPress={() => setOpen("order")}>
      Order a certificate
    </Button>
  );
  return (
    <Page
      title="TLS"
      about="The edge shows visitors the certificate that fits their host best."
      actions={order}
    >
      <div class="stack">
        {universal.data && (
          <Card>
            <Switch
              label="Universal certificate"
              hint={`One for ${zone.name} and *.${zone.name}, issued and renewed without further work.`}
              isOn={universal.data.enabled}
              refusal={refusal("PATCH /zones/{zone_id}/ssl/universal/settings")}
              onChange={(enabled) =>
                void action.run({
                  op: "PATCH /zones/{zone_id}/ssl/universal/settings",
                  params: { zone_id: zone.id },
                  body: { enabled },
                })
              }
            />
          </Card>
        )}
        <Loaded
          of={packs}
          empty={<Empty icon="lock" title="No certificate is issued here" actions={order} />}
        >
          {(list) => (
            <Table
              label="Issued certificates"
              rows={list}
              keyOf={({ id }) => id}
              columns={[
                { title: "Hosts", isWide: true, cell: ({ hosts }) => <code>{hosts.join(", ")}</code> },
                {
                  title: "State",
                  cell: ({ status, validation_errors }) => (
                    <>
                      <State tone={tones[status] ?? "info"}>{status.replaceAll("_", " ")}</State>
                      {validation_errors?.map(({ message }) => (
                        <p key={message} class="error">
                          {message}
                        </p>
                      ))}
                    </>
                  ),
                },
                { title: "Type", isExtra: true, cell: ({ type }) => type },
                {
                  title: "Issuer",
                  isExtra: true,
                  cell: ({ certificates, certificate_authority }) =>
                    certificates[0]?.issuer ?? certificate_authority,
                },
                {
                  title: "Expires",
                  cell: ({ certificates }) =>
                    certificates[0] === undefined ? "–" : <Time at={certificates[0].expires_on} />,
                },
              ]}
              actions={(pack) => (
                <Button
                  icon="trash"
                  kind="quiet"
                  label="Delete the certificate"
                  refusal={
                    edit ?? (pack.type === "universal" ? "switch the universal certificate off" : undefined)
                  }
                  onPress={() => setOpen({ kind: "pack", ...pack })}
                />
              )}
            />
          )}
        </Loaded>
        <Card
          title="Uploaded certificates"
          actions={
            <Button icon="upload" refusal={edit} onPress={() => setOpen("upload")}>
              Upload
            </Button>
          }
        >
          <Loaded of={customs} rows={2} empty={<p class="faint">No certificate was uploaded.</p>}>
            {(list) => (
              <Table
                label="Uploaded certificates"
                rows={list}
                keyOf={({ id }) => id}
                columns={[
                  { title: "Hosts", isWide: true, cell: ({ hosts }) => <code>{hosts.join(", ")}</code> },
                  { title: "State", cell: ({ status }) => <State tone={tones[status]!}>{status}</State> },
                  { title: "Issuer", isExtra: true, cell: ({ issuer }) => issuer },
                  { title: "Expires", cell: ({ expires_on }) => <Time at={expires_on} /> },
                ]}
                actions={(custom) => (
                  <Button
                    icon="trash"
                    kind="quiet"
                    label="Delete the certificate"
                    refusal={edit}
                    onPress={() => setOpen({ kind: "custom", ...custom })}
                  />
                )}
              />
            )}
          </Loaded>
        </Card>
      </div>
      {open === "order" && <OrderDialog onClose={close} />}
      {open === "upload" && <UploadDialog onClose={close} />}
      {typeof open === "object" && (
        <Confirm
          title="Delete the certificate"
          submit="Delete"
          call={
            open.kind === "pack"
              ? {
                  op: "DELETE /zones/{zone_id}/ssl/certificate_packs/{certificate_pack_id}",
                  params: { zone_id: zone.id, certificate_pack_id: open.id },
                }
              : {
                  op: "DELETE /zones/{zone_id}/custom_certificates/{custom_certificate_id}",
                  params: { zone_id: zone.id, custom_certificate_id: open.id },
                }
          }
          done="The certificate was deleted"
          invalidates={[`/zones/${zone.id}/ssl`, `/zones/${zone.id}/custom_certificates`]}
          onClose={close}
        >
          <p>
            Visitors of <code>{open.hosts.join(", ")}</code> get another certificate that fits, or none.
          </p>
        </Confirm>
      )}
    </Page>
  );
}

function OrderDialog({ onClose }: { onClose: () => void }) {
  const zone = useZone();
  const { values, field } = useForm<{ hosts: string; method: "txt" | "http"; days: string }>({
    hosts: `${zone.name}, *.${zone.name}`,
    method: "txt",
    days: "90",
  });
  const body = {
    type: "advanced",
    hosts: values.hosts.split(/[\s,]+/).filter((host) => host !== ""),
    validation_method: values.method,
    validity_days: Number(values.days),
    certificate_authority: "lets_encrypt",
  };
  return (
    <FormDialog
      title="Order a certificate"
      call={{ op: "POST /zones/{zone_id}/ssl/certificate_packs/order", params: { zone_id: zone.id }, body }}
      submit="Order"
      done="The certificate was ordered"
      invalidates={[`/zones/${zone.id}/ssl`]}
      onClose={onClose}
    >
      <TextField label="Hosts" {...field("hosts")} hint="Separated by commas" autofocus isMono />
      <SelectField
        label="Validation"
        {...field("method", "validation_method")}
        options={[
          { value: "txt", label: "DNS: a TXT record, set by this installation" },
          { value: "http", label: "HTTP: a path, answered by the edge" },
        ]}
      />
      <SelectField label="Days" {...field("days", "validity_days")} options={["14", "30", "90", "365"]} />
    </FormDialog>
  );
}

function UploadDialog({ onClose }: { onClose: () => void }) {
  const zone = useZone();
  const { values, field } = useForm({ certificate: "", private_key: "" });
  return (
    <FormDialog
      title="Upload a certificate"
      size="wide"
      call={{
        op: "POST /zones/{zone_id}/custom_certificates",
        params: { zone_id: zone.id },
        body: values,
      }}
      submit="Upload"
      done="The certificate was uploaded"
      invalidates={[`/zones/${zone.id}/custom_certificates`]}
      onClose={onClose}
    >
      <TextField
        label="Certificate, with its chain (PEM)"
        {...field("certificate")}
        rows={8}
        isMono
        autofocus
      />
      <TextField
        label="Private key (PEM)"
        {...field("private_key")}
        rows={8}
        isMono
        hint="It is stored encrypted, and never shown again."
      />
    </FormDialog>
  );
}

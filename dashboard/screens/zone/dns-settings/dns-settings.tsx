import { useAction } from "../../../core/action.ts";
import { useGet, type Query } from "../../../core/cache.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useZone } from "../../../core/zone.ts";
import { AsCode } from "../../../code/as-code.tsx";
import { Button } from "../../../parts/button.tsx";
import { ActionForm, Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Card, Copyable, Facts, Notice, Page, State } from "../../../parts/layout.tsx";
import { Loaded } from "../../../parts/states.tsx";

interface Dnssec {
  status: "active" | "pending" | "disabled" | "pending-disabled";
  algorithm: string | null;
  key_tag: number | null;
  key_type: string | null;
  digest: string | null;
  digest_type: string | null;
  digest_algorithm: string | null;
  ds: string | null;
  public_key: string | null;
  flags: number | null;
  dnssec_use_nsec3: boolean;
}

interface Soa {
  mname: string | null;
  rname: string;
  refresh: number;
  retry: number;
  expire: number;
  min_ttl: number;
  ttl: number;
}
interface DnsSettings {
  flatten_all_cnames: boolean;
  multi_provider: boolean;
  ns_ttl: number;
  soa: Soa;
}

/** Signing of the zone, and its SOA and NS records. */
export default function DnsSettingsScreen() {
  const zone = useZone();
  const dnssec = useGet<Dnssec>(`/zones/${zone.id}/dnssec`);
  const settings = useGet<DnsSettings>(`/zones/${zone.id}/dns_settings`);
  return (
    <Page title="DNS settings">
      <div class="stack">
        <DnssecCard of={dnssec} />
        <Loaded of={settings}>{(data) => <SettingsForm key={JSON.stringify(data)} settings={data} />}</Loaded>
      </div>
    </Page>
  );
}

const states = { active: "ok", pending: "warn", disabled: "off", "pending-disabled": "warn" } as const;

function DnssecCard({ of }: { of: Query<Dnssec> }) {
  const zone = useZone();
  const op = "PATCH /zones/{zone_id}/dnssec";
  const action = useAction({
    done: "DNSSEC was changed",
    invalidates: [`/zones/${zone.id}/dnssec`],
    tellsFailure: true,
  });
  const refusal = useRefusal()(op);
  const isOn = of.data?.status === "active" || of.data?.status === "pending";
  const call = { op, params: { zone_id: zone.id }, body: { status: isOn ? "disabled" : "active" } };
  return (
    <Card
      title="DNSSEC"
      actions={
        of.data && (
          <>
            <AsCode call={call} />
            <Button refusal={refusal} isBusy={action.isBusy} onPress={() => void action.run(call)}>
              {isOn ? "Stop signing" : "Sign the zone"}
            </Button>
          </>
        )
      }
    >
      <Loaded of={of} rows={3}>
        {(data) => (
          <div class="stack">
            <State tone={states[data.status]}>{data.status}</State>
            {data.status === "pending" && (
              <Notice tone="warn">
                Give the DS record below to the registrar. The zone is signed already; resolvers check it once
                the parent zone has the DS record.
              </Notice>
            )}
            {data.ds !== null && (
              <Facts
                facts={[
                  ["DS record", <Copyable key="ds" text={data.ds} />],
                  ["Key tag", <Copyable key="tag" text={String(data.key_tag)} />],
                  ["Algorithm", `${data.algorithm} (${data.key_type})`],
                  ["Digest type", `${data.digest_type} (${data.digest_algorithm})`],
                  ["Digest", <Copyable key="digest" text={data.digest ?? ""} />],
                  ["Flags", String(data.flags)],
                  ["Public key", <Copyable key="key" text={data.public_key ?? ""} />],
                ]}
              />
            )}
          </div>
        )}
      </Loaded>
    </Card>
  );
}

const soaFields: readonly (readonly [keyof Soa, string])[] = [
  ["refresh", "Refresh (s)"],
  ["retry", "Retry (s)"],
  ["expire", "Expire (s)"],
  ["min_ttl", "Negative TTL (s)"],
  ["ttl", "TTL of the SOA (s)"],
];

function SettingsForm({ settings }: { settings: DnsSettings }) {
  const zone = useZone();
  const { values, set } = useForm(settings);
  const soa = (change: Partial<Soa>): void => set("soa", { ...values.soa, ...change });
  return (
    <Card title="Records of the zone itself">
      <ActionForm
        call={{
          op: "PATCH /zones/{zone_id}/dns_settings",
          params: { zone_id: zone.id },
          body: {
            flatten_all_cnames: values.flatten_all_cnames,
            multi_provider: values.multi_provider,
            ns_ttl: values.ns_ttl,
            soa: values.soa,
          },
        }}
        submit="Save"
        done="The DNS settings were saved"
        invalidates={[`/zones/${zone.id}/dns_settings`]}
      >
        <div class="form-row">
          <TextField
            label="Primary name server"
            name="soa.mname"
            value={values.soa.mname ?? ""}
            placeholder={zone.name_servers[0] ?? ""}
            onChange={(mname) => soa({ mname: mname === "" ? null : mname })}
            isMono
          />
          <TextField
            label="Mailbox"
            name="soa.rname"
            value={values.soa.rname}
            onChange={(rname) => soa({ rname })}
            isMono
          />
          <TextField
            label="TTL of NS records (s)"
            name="ns_ttl"
            type="number"
            value={String(values.ns_ttl)}
            onChange={(value) => set("ns_ttl", Number(value))}
          />
        </div>
        <div class="form-row">
          {soaFields.map(([name, label]) => (
            <TextField
              key={name}
              label={label}
              name={`soa.${name}`}
              type="number"
              value={String(values.soa[name])}
              onChange={(value) => soa({ [name]: Number(value) })}
            />
          ))}
        </div>
        <Switch
          label="Flatten all CNAME records"
          hint="Answers have addresses instead of the alias."
          isOn={values.flatten_all_cnames}
          onChange={(on) => set("flatten_all_cnames", on)}
        />
        <Switch
          label="Several providers"
          hint="NS records of other providers at the zone's own name are served."
          isOn={values.multi_provider}
          onChange={(on) => set("multi_provider", on)}
        />
      </ActionForm>
    </Card>
  );
}

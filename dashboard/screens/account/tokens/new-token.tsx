import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import type { Zone } from "../../../core/zone.ts";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, SelectField, TextField } from "../../../parts/form.tsx";
import { Loaded } from "../../../parts/states.tsx";
import { tokensOf, type Owner, type Token } from "./token.ts";

interface Group {
  id: string;
  name: string;
  scopes: string[];
}

type Template = "dns" | "scripts" | "read" | "custom";
const templates: readonly { value: Template; label: string }[] = [
  { value: "dns", label: "Edit the DNS of one zone" },
  { value: "scripts", label: "Deploy scripts" },
  { value: "read", label: "Read everything" },
  { value: "custom", label: "Choose permissions" },
];
const namesOf: Record<Exclude<Template, "custom">, (name: string) => boolean> = {
  dns: (name) => name === "DNS Write" || name === "Zone Read",
  scripts: (name) =>
    /^(Workers (Scripts|KV Storage|Routes)|D1|Queues) Write$|^Workers Tail Read$|^(Zone|Account Settings) Read$/.test(
      name,
    ),
  read: (name) => name.endsWith(" Read"),
};
const zoneScope = "com.cloudflare.api.account.zone";
const accountScope = "com.cloudflare.api.account";

interface NewTokenProps {
  owner: Owner;
  account: string;
  onClose: () => void;
  onValue: (value: string) => void;
}

/** Makes a token from a template or from chosen permissions. */
export function NewToken({ owner, account, onClose, onValue }: NewTokenProps) {
  const { op, path, params } = tokensOf(owner, account);
  const groups = useGet<Group[]>(`${path}/permission_groups`);
  const zones = useGet<Zone[]>(`/zones?account.id=${account}&per_page=100&order=name`);
  const [template, setTemplate] = useState<Template>("dns");
  const [name, setName] = useState("");
  const [zoneId, setZoneId] = useState("");
  const [days, setDays] = useState("0");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const all = (groups.data ?? []).filter(
    ({ scopes }) => owner === "user" || !scopes.includes("com.cloudflare.api.user"),
  );
  const picked =
    template === "custom"
      ? all.filter(({ id }) => chosen.includes(id))
      : all.filter((group) => namesOf[template](group.name));
  const policies = policiesOf(picked, account, zoneId);
  const body = {
    name,
    policies,
    ...(days !== "0" && {
      expires_on: new Date(Math.ceil(Date.now() / 60_000) * 60_000 + Number(days) * 86_400_000).toISOString(),
    }),
  };
  const isOfOneZone = template === "dns";
  const refusal =
    name.trim() === ""
      ? "give it a name"
      : isOfOneZone && zoneId === ""
        ? "choose the zone"
        : policies.length === 0
          ? "choose permissions"
          : undefined;
  return (
    <Dialog title="Create a token" kind="side" onClose={onClose}>
      <Loaded of={groups}>
        {() => (
          <ActionForm<Token & { value: string }>
            call={{ op: `POST ${op}`, params, body }}
            submit="Create the token"
            refusal={refusal}
            invalidates={[path]}
            onCancel={onClose}
            onDone={({ value }) => {
              onClose();
              onValue(value);
            }}
          >
            <TextField label="Name" name="name" value={name} onChange={setName} autofocus />
            <SelectField label="It may" value={template} onChange={setTemplate} options={templates} />
            <SelectField
              label={isOfOneZone ? "Zone" : "Zones"}
              value={zoneId}
              onChange={setZoneId}
              options={[
                { value: "", label: isOfOneZone ? "Choose a zone" : "All zones of the account" },
                ...(zones.data ?? []).map((zone) => ({ value: zone.id, label: zone.name })),
              ]}
            />
            <SelectField
              label="Expires"
              value={days}
              onChange={setDays}
              options={[
                { value: "0", label: "Never" },
                { value: "1", label: "In a day" },
                { value: "30", label: "In 30 days" },
                { value: "365", label: "In a year" },
              ]}
            />
            {template === "custom" ? (
              <fieldset class="choices">
                <legend>Permissions</legend>
                {all.map((group) => (
                  <label key={group.id}>
                    <input
                      type="checkbox"
                      checked={chosen.includes(group.id)}
                      onChange={() =>
                        setChosen(
                          chosen.includes(group.id)
                            ? chosen.filter((id) => id !== group.id)
                            : [...chosen, group.id],
                        )
                      }
                    />
                    {group.name}
                  </label>
                ))}
              </fieldset>
            ) : (
              <p class="hint">Permissions: {picked.map(({ name }) => name).join(", ")}.</p>
            )}
          </ActionForm>
        )}
      </Loaded>
    </Dialog>
  );
}

/** A policy for each kind of resource that the permissions hold on. */
function policiesOf(groups: readonly Group[], account: string, zoneId: string): object[] {
  const of = (scope: string): Group[] => groups.filter(({ scopes }) => scopes.includes(scope));
  const policy = (list: readonly Group[], resources: object): object[] =>
    list.length === 0
      ? []
      : [{ effect: "allow", resources, permission_groups: list.map(({ id, name }) => ({ id, name })) }];
  const zones =
    zoneId === ""
      ? { [`${accountScope}.${account}`]: { [`${zoneScope}.*`]: "*" } }
      : { [`${zoneScope}.${zoneId}`]: "*" };
  return [
    ...policy(of(zoneScope), zones),
    ...policy(of(accountScope), { [`${accountScope}.${account}`]: "*" }),
    ...policy(of("com.cloudflare.api.user"), { "com.cloudflare.api.user.*": "*" }),
  ];
}

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { SelectField, Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Card } from "../../../parts/layout.tsx";
import { Loaded } from "../../../parts/states.tsx";
import { Table, type TableColumn } from "../../../parts/table.tsx";

export interface Peer {
  id: string;
  name: string;
  ip: string | null;
  port: number;
  ixfr_enable: boolean;
  tsig_id: string | null;
}
interface Tsig {
  id: string;
  name: string;
  algo: string;
}
interface Acl {
  id: string;
  name: string;
  ip_range: string;
}

/** The account's peers, keys and networks, which all of its zones share. */
export function Parties({ account }: { account: string }) {
  const tsigs = useGet<Tsig[]>(`/accounts/${account}/secondary_dns/tsigs`);
  const keyName = (id: string | null): string =>
    id === null ? "–" : (tsigs.data?.find((tsig) => tsig.id === id)?.name ?? id);
  return (
    <>
      <PartyCard<Peer>
        account={account}
        kind="peers"
        id="peer_id"
        title="Peers of the account"
        one="peer"
        about="No peer yet: no other server may take zones."
        columns={[
          { title: "Name", isWide: true, cell: ({ name }) => name },
          { title: "Address", cell: ({ ip, port }) => <code>{ip === null ? "–" : `${ip}:${port}`}</code> },
          { title: "Key", cell: ({ tsig_id }) => keyName(tsig_id) },
        ]}
        form={(onClose) => <PeerForm account={account} tsigs={tsigs.data ?? []} onClose={onClose} />}
      />
      <PartyCard<Tsig>
        account={account}
        kind="tsigs"
        id="tsig_id"
        title="Keys of the account (TSIG)"
        one="key"
        about="No key yet."
        columns={[
          { title: "Name", isWide: true, cell: ({ name }) => <code>{name}</code> },
          { title: "Algorithm", cell: ({ algo }) => algo },
        ]}
        form={(onClose) => <TsigForm account={account} onClose={onClose} />}
      />
      <PartyCard<Acl>
        account={account}
        kind="acls"
        id="acl_id"
        title="Networks of the account"
        one="network"
        about="No network yet. Servers in these networks may take zones of this account's peers."
        columns={[
          { title: "Name", isWide: true, cell: ({ name }) => name },
          { title: "Network", cell: ({ ip_range }) => <code>{ip_range}</code> },
        ]}
        form={(onClose) => <AclForm account={account} onClose={onClose} />}
      />
    </>
  );
}

interface PartyCardProps<T> {
  account: string;
  kind: "peers" | "tsigs" | "acls";
  id: string;
  title: string;
  one: string;
  about: string;
  columns: readonly TableColumn<T>[];
  form: (onClose: () => void) => ComponentChildren;
}

function PartyCard<T extends { id: string; name: string }>({
  account,
  kind,
  id,
  title,
  one,
  about,
  columns,
  form,
}: PartyCardProps<T>) {
  const path = `/accounts/${account}/secondary_dns/${kind}`;
  const list = useGet<T[]>(path);
  const [open, setOpen] = useState<"new" | T | undefined>(undefined);
  const base = `/accounts/{account_id}/secondary_dns/${kind}`;
  const refusal = useRefusal()(`POST ${base}`);
  return (
    <Card
      title={title}
      actions={
        <Button icon="plus" refusal={refusal} onPress={() => setOpen("new")}>
          Add a {one}
        </Button>
      }
    >
      <Loaded of={list} rows={2} empty={<p class="faint">{about}</p>}>
        {(rows) => (
          <Table
            label={title}
            rows={rows}
            keyOf={(row) => row.id}
            columns={columns}
            actions={(row) => (
              <Button
                icon="trash"
                kind="quiet"
                label={`Delete ${row.name}`}
                refusal={refusal}
                onPress={() => setOpen(row)}
              />
            )}
          />
        )}
      </Loaded>
      {open === "new" && form(() => setOpen(undefined))}
      {typeof open === "object" && (
        <Confirm
          title={`Delete the ${one} ${open.name}`}
          submit="Delete"
          call={{ op: `DELETE ${base}/{${id}}`, params: { account_id: account, [id]: open.id } }}
          done={`The ${one} was deleted`}
          invalidates={[path]}
          onClose={() => setOpen(undefined)}
        />
      )}
    </Card>
  );
}

function PeerForm({
  account,
  tsigs,
  onClose,
}: {
  account: string;
  tsigs: readonly Tsig[];
  onClose: () => void;
}) {
  const { values, set, field } = useForm({ name: "", ip: "", port: "53", tsig: "", ixfr: true });
  const body = {
    name: values.name,
    ip: values.ip === "" ? null : values.ip,
    port: Number(values.port),
    ixfr_enable: values.ixfr,
    tsig_id: values.tsig === "" ? null : values.tsig,
  };
  return (
    <FormDialog
      title="Add a peer"
      call={{
        op: "POST /accounts/{account_id}/secondary_dns/peers",
        params: { account_id: account },
        body,
      }}
      submit="Add the peer"
      done="The peer was added"
      invalidates={[`/accounts/${account}/secondary_dns/peers`]}
      onClose={onClose}
    >
      <TextField label="Name" {...field("name")} autofocus />
      <div class="form-row">
        <TextField label="Address" {...field("ip")} isMono />
        <TextField label="Port" {...field("port")} type="number" />
      </div>
      <SelectField
        label="Key"
        {...field("tsig", "tsig_id")}
        options={[{ value: "", label: "None" }, ...tsigs.map(({ id, name }) => ({ value: id, label: name }))]}
      />
      <Switch
        label="Incremental transfers"
        hint="IXFR: changes only."
        isOn={values.ixfr}
        onChange={(on) => set("ixfr", on)}
      />
    </FormDialog>
  );
}

const algorithms: readonly string[] = [
  "hmac-sha256.",
  "hmac-sha384.",
  "hmac-sha512.",
  "hmac-sha224.",
  "hmac-sha1.",
];

function TsigForm({ account, onClose }: { account: string; onClose: () => void }) {
  const { values, field } = useForm({ name: "", algo: "hmac-sha256.", secret: "" });
  return (
    <FormDialog
      title="Add a key"
      call={{
        op: "POST /accounts/{account_id}/secondary_dns/tsigs",
        params: { account_id: account },
        body: values,
      }}
      submit="Add the key"
      done="The key was added"
      invalidates={[`/accounts/${account}/secondary_dns/tsigs`]}
      onClose={onClose}
    >
      <TextField label="Name" {...field("name")} autofocus isMono />
      <SelectField label="Algorithm" {...field("algo")} options={algorithms} />
      <TextField label="Secret (base64)" {...field("secret")} type="password" isMono />
    </FormDialog>
  );
}

function AclForm({ account, onClose }: { account: string; onClose: () => void }) {
  const { values, field } = useForm({ name: "", ip_range: "" });
  return (
    <FormDialog
      title="Add a network"
      call={{
        op: "POST /accounts/{account_id}/secondary_dns/acls",
        params: { account_id: account },
        body: values,
      }}
      submit="Add the network"
      done="The network was added"
      invalidates={[`/accounts/${account}/secondary_dns/acls`]}
      onClose={onClose}
    >
      <TextField label="Name" {...field("name")} autofocus />
      <TextField label="Network" {...field("ip_range")} placeholder="192.0.2.0/24" isMono />
    </FormDialog>
  );
}

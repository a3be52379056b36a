import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import { useShortcuts } from "../../../core/keys.ts";
import { isAllowed, useRefusal } from "../../../core/permissions.ts";
import { useSearch } from "../../../core/router.ts";
import { session } from "../../../core/session.ts";
import { useStore } from "../../../core/store.ts";
import type { Zone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { Page, State, Time, type Tone } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { ShownOnce } from "../../../parts/shown-once.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";
import { Tabs } from "../../../parts/tabs.tsx";
import { ActionForm } from "../../../parts/form.tsx";
import type { ScreenProps } from "../../../shell/route.ts";
import { NewToken } from "./new-token.tsx";
import { tokensOf, type Owner, type Token } from "./token.ts";

const tones: Record<Token["status"], Tone> = { active: "ok", disabled: "off", expired: "bad" };
const zoneScope = "com.cloudflare.api.account.zone.";
/** The zones that a token is limited to, by name; all of them if it is limited to none. */
function zonesOf({ policies }: Token, zones: readonly Zone[]): string {
  const ids = policies
    .flatMap(({ resources }) => Object.keys(resources))
    .filter((key) => key.startsWith(zoneScope) && !key.endsWith("*"))
    .map((key) => key.slice(zoneScope.length));
  if (ids.length === 0) return "All";
  return shortened(ids.map((id) => zones.find((zone) => zone.id === id)?.name ?? id));
}
const rightsOf = ({ policies }: Token): string[] =>
  policies.flatMap(({ permission_groups }) => permission_groups.map(({ name }) => name));

/** API tokens of the user and of the account. */
export default function Tokens({ account }: ScreenProps) {
  const opened = useStore(session);
  const owners: { key: Owner; name: string }[] = [
    ...(isAllowed("user_tokens:read", { accountId: account })
      ? [{ key: "user" as const, name: "Yours" }]
      : []),
    ...(isAllowed("account_tokens:read", { accountId: account })
      ? [{ key: "account" as const, name: "The account's" }]
      : []),
  ];
  const [chosen, setOwner] = useSearch("owner", owners[0]?.key ?? "user");
  const owner: Owner = chosen === "account" ? "account" : "user";
  const [isNew, setNew] = useState(false);
  const [value, setValue] = useState<string | undefined>(undefined);
  const refusal = useRefusal()(`POST ${tokensOf(owner, account).op}`);
  useShortcuts([{ keys: "n", label: "Create a token", run: () => refusal === undefined && setNew(true) }]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setNew(true)}>
      Create a token
    </Button>
  );
  return (
    <Page
      title="API tokens"
      about="Clients and people sign in with tokens. A token never has more permissions than its owner."
      actions={add}
    >
      <Tabs label="Owner" tabs={owners} current={owner} onChange={setOwner}>
        <TokenList
          key={owner}
          owner={owner}
          account={account}
          ownId={opened?.token.id}
          add={add}
          onValue={setValue}
        />
      </Tabs>
      {isNew && <NewToken owner={owner} account={account} onClose={() => setNew(false)} onValue={setValue} />}
      {value !== undefined && (
        <ShownOnce
          title="The token's value"
          about="It is shown only now. Copy it before you close this."
          text={value}
          name="the token"
          onClose={() => setValue(undefined)}
        />
      )}
    </Page>
  );
}

interface TokenListProps {
  owner: Owner;
  account: string;
  /** The token of this session. */
  ownId: string | undefined;
  add: ComponentChildren;
  onValue: (value: string) => void;
}

function TokenList({ owner, account, ownId, add, onValue }: TokenListProps) {
  const { op, path, params } = tokensOf(owner, account);
  const tokens = useGet<Token[]>(`${path}?per_page=50`);
  const zones = useGet<Zone[]>(`/zones?account.id=${account}&per_page=100&order=name`);
  const [open, setOpen] = useState<{ kind: "roll" | "delete"; token: Token } | undefined>(undefined);
  const refusal = useRefusal()(`POST ${op}`);
  const close = (): void => setOpen(undefined);
  return (
    <>
      <Loaded of={tokens} empty={<Empty icon="tokens" title="No token yet" actions={add} />}>
        {(list) => (
          <Table
            label="Tokens"
            rows={list}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "Name",
                isWide: true,
                cell: (token) => (
                  <>
                    {token.name} {token.id === ownId && <span class="badge">this session</span>}
                    <br />
                    <small>May: {shortened(rightsOf(token))}</small>
                  </>
                ),
              },
              { title: "Zones", cell: (token) => zonesOf(token, zones.data ?? []) },
              { title: "State", cell: ({ status }) => <State tone={tones[status]}>{status}</State> },
              {
                title: "Used",
                isExtra: true,
                cell: ({ last_used_on }) => (last_used_on === null ? "never" : <Time at={last_used_on} />),
              },
              {
                title: "Expires",
                isExtra: true,
                cell: ({ expires_on }) => (expires_on === undefined ? "never" : <Time at={expires_on} />),
              },
            ]}
            actions={(token) => (
              <Menu
                label={`Actions of ${token.name}`}
                items={[
                  {
                    label: "Give it a new value",
                    icon: "refresh",
                    refusal,
                    onSelect: () => setOpen({ kind: "roll", token }),
                  },
                  {
                    label: "Delete",
                    icon: "trash",
                    kind: "bad",
                    refusal,
                    onSelect: () => setOpen({ kind: "delete", token }),
                  },
                ]}
              />
            )}
          />
        )}
      </Loaded>
      {open?.kind === "roll" && (
        <Dialog title={`A new value for ${open.token.name}`} onClose={close}>
          <ActionForm<string>
            call={{
              op: `PUT ${op}/{token_id}/value`,
              params: { ...params, token_id: open.token.id },
              body: {},
            }}
            submit="Give it a new value"
            invalidates={[path]}
            onCancel={close}
            onDone={(value) => {
              close();
              onValue(value);
            }}
          >
            {() => (
              <p>
                The old value stops working at once{open.token.id === ownId ? ", and this session ends" : ""}.
              </p>
            )}
          </ActionForm>
        </Dialog>
      )}
      {open?.kind === "delete" && (
        <Confirm
          title={`Delete ${open.token.name}`}
          submit="Delete the token"
          call={{ op: `DELETE ${op}/{token_id}`, params: { ...params, token_id: open.token.id } }}
          done="The token was deleted"
          invalidates={[path]}
          onClose={close}
        >
          <p>
            Clients with it, and sessions of this console, get 401 from now on
            {open.token.id === ownId ? ": this session too" : ""}.
          </p>
        </Confirm>
      )}
    </>
  );
}

const shortened = (names: readonly string[]): string =>
  names.length <= 4 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;

import { useGet } from "../../../core/cache.ts";
import { isAllowed } from "../../../core/permissions.ts";
import { singleKeys, theme, type Theme } from "../../../core/preferences.ts";
import { useStore } from "../../../core/store.ts";
import { ActionForm, SelectField, Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Card, Copyable, Facts, Page, Time } from "../../../parts/layout.tsx";
import { Loaded } from "../../../parts/states.tsx";
import { session } from "../../../core/session.ts";
import type { ScreenProps } from "../../../shell/route.ts";

interface Account {
  id: string;
  name: string;
  type: string;
  created_on: string;
  settings: { enforce_twofactor: boolean; abuse_contact_email: string | null };
}

/** The account, this browser, and this session. */
export default function Settings({ account }: ScreenProps) {
  const of = useGet<Account>(`/accounts/${account}`);
  return (
    <Page title="Settings">
      <div class="stack">
        <Card title="Account">
          <Loaded of={of}>{(data) => <AccountForm key={data.name} data={data} />}</Loaded>
        </Card>
        <Subdomain account={account} />
        <Browser />
        <SessionCard />
      </div>
    </Page>
  );
}

function AccountForm({ data }: { data: Account }) {
  const { values, field } = useForm({ name: data.name, abuse: data.settings.abuse_contact_email ?? "" });
  return (
    <>
      <Facts
        facts={[
          ["Id", <Copyable key="id" text={data.id} />],
          ["Type", data.type],
          ["Created", <Time key="created" at={data.created_on} />],
        ]}
      />
      <ActionForm
        call={{
          op: "PUT /accounts/{account_id}",
          params: { account_id: data.id },
          body: {
            name: values.name,
            settings: { abuse_contact_email: values.abuse === "" ? null : values.abuse },
          },
        }}
        submit="Save"
        done="The account was saved. The menu shows a new name at the next sign-in"
        invalidates={[`/accounts/${data.id}`]}
      >
        <div class="form-row">
          <TextField label="Name" {...field("name")} />
          <TextField
            label="Address for reports of abuse"
            {...field("abuse", "settings.abuse_contact_email")}
          />
        </div>
      </ActionForm>
    </>
  );
}

/** The name below which each script of the account has an address. */
function Subdomain({ account }: { account: string }) {
  const path = `/accounts/${account}/workers/subdomain`;
  const isReadable = isAllowed("workers_scripts:read", { accountId: account });
  const of = useGet<{ subdomain: string }>(isReadable ? path : undefined);
  if (!isReadable) return null;
  const isNone = of.failure?.status === 404;
  return (
    <Card title="Addresses of scripts">
      {isNone ? (
        <SubdomainForm account={account} path={path} current="" />
      ) : (
        <Loaded of={of} rows={2}>
          {({ subdomain }) => (
            <SubdomainForm key={subdomain} account={account} path={path} current={subdomain} />
          )}
        </Loaded>
      )}
    </Card>
  );
}

function SubdomainForm({ account, path, current }: { account: string; path: string; current: string }) {
  const { values, field } = useForm({ subdomain: current });
  const { subdomain } = values;
  return (
    <ActionForm
      call={{
        op: "PUT /accounts/{account_id}/workers/subdomain",
        params: { account_id: account },
        body: { subdomain },
      }}
      submit="Save"
      done="The subdomain was saved"
      refusal={subdomain === current || subdomain === "" ? "nothing is changed" : undefined}
      invalidates={[path, `/accounts/${account}/workers/workers`]}
    >
      <TextField
        label="Subdomain"
        {...field("subdomain")}
        isMono
        isNarrow
        hint={
          current === ""
            ? "Without one, scripts have no address of their own."
            : "Its change moves the addresses of all scripts at once."
        }
      />
    </ActionForm>
  );
}

function Browser() {
  const chosen = useStore(theme);
  const isOn = useStore(singleKeys);
  return (
    <Card title="This browser">
      <SelectField<Theme>
        label="Theme"
        isNarrow
        value={chosen}
        onChange={(value) => theme.set(value)}
        options={[
          { value: "system", label: "As the system" },
          { value: "light", label: "Light" },
          { value: "dark", label: "Dark" },
        ]}
      />
      <Switch
        label="Single letters are keys"
        hint="Without them, only Ctrl K, Escape and the arrows work."
        isOn={isOn}
        onChange={(value) => singleKeys.set(value)}
      />
    </Card>
  );
}

function SessionCard() {
  const opened = useStore(session);
  if (opened == null) return null;
  return (
    <Card title="This session">
      <Facts
        facts={[
          ["Token", opened.token.name],
          ["User", opened.user?.email ?? "none: a token of an account"],
          ["Signed in", <Time key="in" at={opened.created_on} />],
          ["Ends without use", <Time key="out" at={opened.expires_on} />],
        ]}
      />
    </Card>
  );
}

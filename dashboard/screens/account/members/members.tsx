import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import { useShortcuts } from "../../../core/keys.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, TextField } from "../../../parts/form.tsx";
import { Page, State } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { ShownOnce } from "../../../parts/shown-once.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";
import type { ScreenProps } from "../../../shell/route.ts";

interface Role {
  id: string;
  name: string;
  description: string;
}
interface Member {
  id: string;
  email: string;
  status: "accepted" | "pending" | "rejected";
  roles: Role[];
}
type Open = { kind: "invite" } | { kind: "roles" | "remove"; member: Member } | undefined;

/** The people of the account, and their roles. */
export default function Members({ account }: ScreenProps) {
  const path = `/accounts/${account}/members`;
  const members = useGet<Member[]>(`${path}?per_page=50`);
  const [open, setOpen] = useState<Open>(undefined);
  const [url, setUrl] = useState<string | undefined>(undefined);
  const refusal = useRefusal()("POST /accounts/{account_id}/members");
  const close = (): void => setOpen(undefined);
  useShortcuts([
    { keys: "n", label: "Invite a member", run: () => refusal === undefined && setOpen({ kind: "invite" }) },
  ]);
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setOpen({ kind: "invite" })}>
      Invite a member
    </Button>
  );
  return (
    <Page title="Members" about="A member has the permissions of its roles, with every token." actions={add}>
      <Loaded of={members} empty={<Empty icon="members" title="No member" actions={add} />}>
        {(list) => (
          <Table
            label="Members"
            rows={list}
            keyOf={({ id }) => id}
            columns={[
              { title: "Address", isWide: true, cell: ({ email }) => email },
              { title: "Roles", cell: ({ roles }) => roles.map(({ name }) => name).join(", ") },
              {
                title: "State",
                cell: ({ status }) => (
                  <State tone={status === "accepted" ? "ok" : status === "pending" ? "warn" : "off"}>
                    {status}
                  </State>
                ),
              },
            ]}
            actions={(member) => (
              <Menu
                label={`Actions of ${member.email}`}
                items={[
                  {
                    label: "Change the roles",
                    icon: "edit",
                    refusal,
                    onSelect: () => setOpen({ kind: "roles", member }),
                  },
                  {
                    label: "Remove",
                    icon: "trash",
                    kind: "bad",
                    refusal,
                    onSelect: () => setOpen({ kind: "remove", member }),
                  },
                ]}
              />
            )}
          />
        )}
      </Loaded>
      {open?.kind === "invite" && (
        <RolesDialog account={account} member={undefined} onUrl={setUrl} onClose={close} />
      )}
      {open?.kind === "roles" && (
        <RolesDialog account={account} member={open.member} onUrl={setUrl} onClose={close} />
      )}
      {open?.kind === "remove" && (
        <Confirm
          title={`Remove ${open.member.email}`}
          submit="Remove"
          call={{
            op: "DELETE /accounts/{account_id}/members/{member_id}",
            params: { account_id: account, member_id: open.member.id },
          }}
          done="The member was removed"
          invalidates={[path]}
          onClose={close}
        >
          <p>Their tokens lose this account at once.</p>
        </Confirm>
      )}
      {url !== undefined && (
        <ShownOnce
          title="The invitation"
          about="Send this address to the person. It works once, and is shown only now."
          text={url}
          name="the address"
          onClose={() => setUrl(undefined)}
        />
      )}
    </Page>
  );
}

function RolesDialog({
  account,
  member,
  onUrl,
  onClose,
}: {
  account: string;
  member: Member | undefined;
  onUrl: (url: string) => void;
  onClose: () => void;
}) {
  const roles = useGet<Role[]>(`/accounts/${account}/roles?per_page=50`);
  const [email, setEmail] = useState("");
  const [chosen, setChosen] = useState<readonly string[]>(member?.roles.map(({ id }) => id) ?? []);
  const call =
    member === undefined
      ? {
          op: "POST /accounts/{account_id}/members",
          params: { account_id: account },
          body: { email, roles: chosen },
        }
      : {
          op: "PUT /accounts/{account_id}/members/{member_id}",
          params: { account_id: account, member_id: member.id },
          body: { roles: chosen.map((id) => ({ id })) },
        };
  return (
    <Dialog
      title={member === undefined ? "Invite a member" : `Roles of ${member.email}`}
      kind="side"
      onClose={onClose}
    >
      <Loaded of={roles}>
        {(list) => (
          <ActionForm<{ invitation?: { url: string } }>
            call={call}
            submit={member === undefined ? "Invite" : "Save"}
            refusal={chosen.length === 0 ? "choose a role" : undefined}
            {...(member !== undefined && { done: "The roles were changed" })}
            invalidates={[`/accounts/${account}/members`]}
            onCancel={onClose}
            onDone={({ invitation }) => {
              onClose();
              if (invitation !== undefined) onUrl(invitation.url);
            }}
          >
            {member === undefined && (
              <TextField label="E-mail address" name="email" value={email} onChange={setEmail} autofocus />
            )}
            <fieldset class="choices">
              <legend>Roles</legend>
              {list.map(({ id, name, description }) => (
                <label key={id}>
                  <input
                    type="checkbox"
                    checked={chosen.includes(id)}
                    onChange={() =>
                      setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id])
                    }
                  />
                  <span>
                    {name}
                    <br />
                    <small>{description}</small>
                  </span>
                </label>
              ))}
            </fieldset>
          </ActionForm>
        )}
      </Loaded>
    </Dialog>
  );
}

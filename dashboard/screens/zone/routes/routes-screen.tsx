import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import { useShortcuts } from "../../../core/keys.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { href } from "../../../core/router.ts";
import { useZone } from "../../../core/zone.ts";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { SelectField, TextField } from "../../../parts/form.tsx";
import { Card, Page } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";
import type { ScreenProps } from "../../../shell/route.ts";

interface WorkerRoute {
  id: string;
  pattern: string;
  script: string | null;
}
interface Domain {
  id: string;
  hostname: string;
  service: string;
}

type Open =
  | { kind: "edit"; route: WorkerRoute | undefined }
  | { kind: "delete"; route: WorkerRoute }
  | { kind: "domain" }
  | { kind: "detach"; domain: Domain };

/** The routes of the zone's requests to scripts: by URL pattern, and for whole hosts. */
export default function Routes({ account }: ScreenProps) {
  const zone = useZone();
  const path = `/zones/${zone.id}/workers/routes`;
  const routes = useGet<WorkerRoute[]>(path);
  const domains = useGet<Domain[]>(`/accounts/${account}/workers/domains?zone_id=${zone.id}`);
  const [open, setOpen] = useState<Open | undefined>(undefined);
  const refusal = useRefusal();
  const edit = refusal("POST /zones/{zone_id}/workers/routes");
  const close = (): void => setOpen(undefined);
  useShortcuts([
    {
      keys: "n",
      label: "Add a route",
      run: () => edit === undefined && setOpen({ kind: "edit", route: undefined }),
    },
  ]);
  const add = (
    <Button
      icon="plus"
      kind="primary"
      refusal={edit}
      onPress={() => setOpen({ kind: "edit", route: undefined })}
    >
      Add a route
    </Button>
  );
  const script = (name: string) => (
    <a href={href(`/${account}/scripts/${encodeURIComponent(name)}`)}>{name}</a>
  );
  return (
    <Page title="Routes" about="The most specific pattern decides which script gets a request." actions={add}>
      <div class="stack">
        <Loaded
          of={routes}
          empty={
            <Empty icon="route" title="No route yet" actions={add}>
              <p>A route sends requests that match a pattern to a script.</p>
            </Empty>
          }
        >
          {(list) => (
            <Table
              label="Routes"
              rows={list}
              keyOf={({ id }) => id}
              columns={[
                { title: "Pattern", isWide: true, cell: ({ pattern }) => <code>{pattern}</code> },
                {
                  title: "Script",
                  cell: (route) =>
                    route.script === null ? (
                      <span class="faint">none: to the origin</span>
                    ) : (
                      script(route.script)
                    ),
                },
              ]}
              actions={(route) => (
                <Menu
                  label={`Actions of ${route.pattern}`}
                  items={[
                    {
                      label: "Edit",
                      icon: "edit",
                      refusal: edit,
                      onSelect: () => setOpen({ kind: "edit", route }),
                    },
                    {
                      label: "Delete",
                      icon: "trash",
                      kind: "bad",
                      refusal: edit,
                      onSelect: () => setOpen({ kind: "delete", route }),
                    },
                  ]}
                />
              )}
            />
          )}
        </Loaded>
        <Card
          title="Custom domains"
          actions={
            <Button
              icon="plus"
              refusal={refusal("PUT /accounts/{account_id}/workers/domains")}
              onPress={() => setOpen({ kind: "domain" })}
            >
              Add a domain
            </Button>
          }
        >
          <Loaded
            of={domains}
            rows={2}
            empty={<p class="faint">No host of this zone belongs to a script as a whole.</p>}
          >
            {(list) => (
              <Table
                label="Custom domains"
                rows={list}
                keyOf={({ id }) => id}
                columns={[
                  { title: "Host", isWide: true, cell: ({ hostname }) => <code>{hostname}</code> },
                  { title: "Script", cell: ({ service }) => script(service) },
                ]}
                actions={(domain) => (
                  <Button
                    icon="trash"
                    kind="quiet"
                    label={`Remove ${domain.hostname}`}
                    onPress={() => setOpen({ kind: "detach", domain })}
                  />
                )}
              />
            )}
          </Loaded>
        </Card>
      </div>
      {open?.kind === "edit" && <RouteDialog account={account} route={open.route} onClose={close} />}
      {open?.kind === "delete" && (
        <Confirm
          title="Delete the route"
          submit="Delete"
          call={{
            op: "DELETE /zones/{zone_id}/workers/routes/{route_id}",
            params: { zone_id: zone.id, route_id: open.route.id },
          }}
          done="The route was deleted"
          invalidates={[path]}
          onClose={close}
        >
          <p>
            Requests to <code>{open.route.pattern}</code> go to the origin, or to a less specific route.
          </p>
        </Confirm>
      )}
      {open?.kind === "domain" && <DomainDialog account={account} onClose={close} />}
      {open?.kind === "detach" && (
        <Confirm
          title={`Remove ${open.domain.hostname}`}
          submit="Remove"
          call={{
            op: "DELETE /accounts/{account_id}/workers/domains/{domain_id}",
            params: { account_id: account, domain_id: open.domain.id },
          }}
          done="The domain was removed"
          invalidates={[`/accounts/${account}/workers/domains`]}
          onClose={close}
        >
          <p>Its DNS record is removed too.</p>
        </Confirm>
      )}
    </Page>
  );
}

/** The names of the account's scripts. */
const useScripts = (account: string): string[] =>
  useGet<{ id: string }[]>(`/accounts/${account}/workers/scripts`).data?.map(({ id }) => id) ?? [];

function RouteDialog({
  account,
  route,
  onClose,
}: {
  account: string;
  route: WorkerRoute | undefined;
  onClose: () => void;
}) {
  const zone = useZone();
  const [pattern, setPattern] = useState(route?.pattern ?? `${zone.name}/*`);
  const [script, setScript] = useState(route?.script ?? "");
  const scripts = useScripts(account);
  const body = { pattern, script: script === "" ? null : script };
  const params = { zone_id: zone.id, ...(route && { route_id: route.id }) };
  return (
    <FormDialog
      title={route === undefined ? "Add a route" : "Edit the route"}
      call={{
        op:
          route === undefined
            ? "POST /zones/{zone_id}/workers/routes"
            : "PUT /zones/{zone_id}/workers/routes/{route_id}",
        params,
        body,
      }}
      submit="Save"
      done="The route was saved"
      invalidates={[`/zones/${zone.id}/workers/routes`]}
      onClose={onClose}
    >
      <TextField
        label="Pattern"
        name="pattern"
        value={pattern}
        onChange={setPattern}
        hint="* stands for any text: shop.example/api/*"
        autofocus
        isMono
      />
      <SelectField
        label="Script"
        name="script"
        value={script}
        onChange={setScript}
        options={[
          { value: "", label: "None: to the origin" },
          ...scripts.map((each) => ({ value: each, label: each })),
        ]}
      />
    </FormDialog>
  );
}

function DomainDialog({ account, onClose }: { account: string; onClose: () => void }) {
  const zone = useZone();
  const [hostname, setHostname] = useState(`app.${zone.name}`);
  const [service, setService] = useState("");
  const scripts = useScripts(account);
  return (
    <FormDialog
      title="Add a custom domain"
      call={{
        op: "PUT /accounts/{account_id}/workers/domains",
        params: { account_id: account },
        body: { hostname, service, zone_id: zone.id },
      }}
      submit="Add the domain"
      done="The domain was added"
      refusal={service === "" ? "choose a script" : undefined}
      invalidates={[`/accounts/${account}/workers/domains`]}
      onClose={onClose}
    >
      <TextField label="Host" name="hostname" value={hostname} onChange={setHostname} autofocus isMono />
      <SelectField
        label="Script"
        name="service"
        value={service}
        onChange={setService}
        options={[
          { value: "", label: "Choose a script" },
          ...scripts.map((each) => ({ value: each, label: each })),
        ]}
      />
    </FormDialog>
  );
}

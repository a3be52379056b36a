import { useState } from "preact/hooks";
import { useGet } from "../../core/cache.ts";
import { count } from "../../core/format.ts";
import { useShortcuts } from "../../core/keys.ts";
import { useRows } from "../../core/pages.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Button } from "../../parts/button.tsx";
import { useChosen } from "../../parts/chosen.ts";
import { Choice } from "../../parts/filter.tsx";
import { TextField, useForm } from "../../parts/form.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Page, Time } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { jsonOf } from "./event.tsx";
import { lengthOf } from "./scale.ts";
import { Many } from "./many.tsx";
import { InstanceStatus } from "./status.tsx";
import { statuses, type Instance, type Workflow } from "./workflow.ts";

const op = "POST /accounts/{account_id}/workflows/{workflow_name}/instances";

/** The most that one call of the API terminates or deletes. */
const chosenMax = 100;

const columnsOf = (base: string): Column<Instance>[] => [
  {
    key: "name",
    title: "Instance",
    width: "minmax(96px, 2fr)",
    cell: ({ id }) => <a href={href(`${base}/${encodeURIComponent(id)}`)}>{id}</a>,
  },
  {
    key: "status",
    title: "Status",
    width: "minmax(124px, 1fr)",
    cell: ({ status }) => <InstanceStatus status={status} />,
  },
  {
    key: "created",
    title: "Created",
    width: "84px",
    cell: ({ created_on }) => <Time at={created_on} />,
  },
  {
    key: "time",
    title: "Time",
    width: "100px",
    isNumber: true,
    isExtra: true,
    cell: ({ started_on, ended_on }) =>
      started_on === null || ended_on === null
        ? "–"
        : lengthOf(Math.max(0, Date.parse(ended_on) - Date.parse(started_on))),
  },
  {
    key: "source",
    title: "Started by",
    width: "100px",
    isExtra: true,
    cell: ({ trigger_source }) => trigger_source,
  },
];

/** The instances of one workflow, by status. */
export default function Instances({ account, params }: ScreenProps) {
  const name = params["workflow"]!;
  const path = `/accounts/${account}/workflows/${encodeURIComponent(name)}`;
  const workflow = useGet<Workflow>(path, { everyMs: 5000 });
  const [status, setStatus] = useSearch("status");
  const rows = useRows<Instance>(`${path}/instances${status === "" ? "" : `?status=${status}`}`, 100);
  const chosen = useChosen(rows, ({ id }) => id, { max: chosenMax, of: `${path} ${status}` });
  const [isStarting, setStarting] = useState(false);
  const refusal = useRefusal()(op);
  useShortcuts([
    { keys: "n", label: "Start an instance", run: () => refusal === undefined && setStarting(true) },
  ]);
  const base = `/${account}/workflows/${encodeURIComponent(name)}`;
  const start = (
    <Button icon="play" kind="primary" refusal={refusal} onPress={() => setStarting(true)}>
      Start an instance
    </Button>
  );
  return (
    <Page
      title={name}
      up={{ name: "Workflows", path: `/${account}/workflows` }}
      about={
        workflow.data && (
          <>
            Class <code>{workflow.data.class_name}</code> of the script{" "}
            <a href={href(`/${account}/scripts/${encodeURIComponent(workflow.data.script_name)}`)}>
              {workflow.data.script_name}
            </a>
            {workflow.data.schedules.map(({ cron }) => (
              <code key={cron}> {cron}</code>
            ))}
          </>
        )
      }
      actions={start}
    >
      <div class="toolbar">
        <Choice
          label="Status"
          value={status}
          onChange={setStatus}
          options={[
            { value: "", label: "All statuses" },
            ...statuses.map((value) => ({
              value,
              label:
                workflow.data === undefined ? value : `${value} (${count(workflow.data.instances[value])})`,
            })),
          ]}
        />
        <Button icon="refresh" onPress={rows.first.reload}>
          Read again
        </Button>
      </div>
      <Loaded
        of={rows.first}
        empty={
          status === "" ? (
            <Empty icon="workflows" title="No instance yet" actions={start}>
              <p>
                Or <code>wrangler workflows trigger {name}</code>.
              </p>
            </Empty>
          ) : (
            <Empty icon="search" title={`No instance is ${status}`} />
          )
        }
      >
        {() => (
          <>
            <Many
              params={{ account_id: account, workflow_name: name }}
              chosen={chosen}
              onDone={() => {
                rows.first.reload();
                workflow.reload();
              }}
            />
            <Grid
              label="Instances"
              selection={chosen}
              columns={columnsOf(base)}
              rows={rows}
              keyOf={({ id }) => id}
              onOpen={({ id }) => navigate(`${base}/${encodeURIComponent(id)}`)}
            />
          </>
        )}
      </Loaded>
      {isStarting && <StartDialog account={account} name={name} onClose={() => setStarting(false)} />}
    </Page>
  );
}

function StartDialog({ account, name, onClose }: { account: string; name: string; onClose: () => void }) {
  const { values, set, field } = useForm({ id: "", params: "" });
  const { value, fault } = jsonOf(values.params);
  return (
    <FormDialog<{ id: string }>
      title={`Start ${name}`}
      call={{
        op,
        params: { account_id: account, workflow_name: name },
        body: { ...(values.id !== "" && { id: values.id }), ...(value !== undefined && { params: value }) },
      }}
      submit="Start"
      done="The instance was started"
      refusal={fault}
      invalidates={[`/accounts/${account}/workflows`]}
      onClose={onClose}
      onDone={({ id }) =>
        navigate(`/${account}/workflows/${encodeURIComponent(name)}/${encodeURIComponent(id)}`)
      }
    >
      <TextField
        label="Parameters"
        name="params"
        error={fault}
        value={values.params}
        onChange={(params) => set("params", params)}
        hint="JSON, or empty"
        rows={8}
        isMono
        autofocus
      />
      <TextField label="Id" {...field("id")} hint="Empty: one is made" isMono />
    </FormDialog>
  );
}

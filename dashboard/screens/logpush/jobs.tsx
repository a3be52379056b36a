import { useState } from "preact/hooks";
import { useAction } from "../../core/action.ts";
import { useGet } from "../../core/cache.ts";
import { useShortcuts } from "../../core/keys.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Page, State, Time } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { dataSetOf, isFailing, type Job, type Owner } from "./job.ts";
import { NewJob } from "./new-job.tsx";

const everyMs = 5000;

/** The jobs that upload events of an account or a zone. */
export function Jobs({ of: owner }: { of: Owner }) {
  const jobs = useGet<Job[]>(`${owner.path}/jobs`, { everyMs });
  const [isAdding, setAdding] = useState(false);
  const [deleted, setDeleted] = useState<Job | undefined>(undefined);
  const refusal = useRefusal();
  const create = refusal(`POST ${owner.op}/jobs`);
  useShortcuts([{ keys: "n", label: "New Logpush job", run: () => create === undefined && setAdding(true) }]);
  const action = useAction({ invalidates: [owner.path], tellsFailure: true });
  const call = (method: "PUT" | "DELETE", { id }: Job) => ({
    op: `${method} ${owner.op}/jobs/{job_id}`,
    params: { ...owner.params, job_id: String(id) },
  });
  const add = (
    <Button icon="plus" kind="primary" refusal={create} onPress={() => setAdding(true)}>
      New job
    </Button>
  );
  return (
    <Page
      title="Logpush"
      about="Jobs upload events to your own store or collector, as they happen."
      actions={add}
    >
      <Loaded
        of={jobs}
        empty={
          <Empty icon="upload" title="No job yet" actions={add}>
            <p>A job uploads a data set, such as requests, to a bucket or to an HTTPS address.</p>
          </Empty>
        }
      >
        {(list) => (
          <Table
            label="Logpush jobs"
            rows={list}
            keyOf={({ id }) => String(id)}
            columns={[
              {
                title: "Job",
                isWide: true,
                cell: (job) => (
                  <>
                    {job.name || dataSetOf(owner, job)}
                    <br />
                    <small>{job.destination_conf}</small>
                  </>
                ),
              },
              { title: "Data set", cell: (job) => dataSetOf(owner, job) },
              { title: "State", cell: (job) => <JobState of={job} /> },
              {
                title: "Last upload",
                cell: ({ last_complete: at }) =>
                  at === null ? <span class="faint">none yet</span> : <Time at={at} />,
              },
            ]}
            actions={(job) => (
              <Menu
                label={`Actions of ${job.name || dataSetOf(owner, job)}`}
                items={[
                  {
                    label: job.enabled ? "Pause" : "Start",
                    icon: job.enabled ? "pause" : "play",
                    refusal: refusal(call("PUT", job).op),
                    onSelect: () => void action.run({ ...call("PUT", job), body: { enabled: !job.enabled } }),
                  },
                  {
                    label: "Delete",
                    icon: "trash",
                    kind: "bad",
                    refusal: refusal(call("DELETE", job).op),
                    onSelect: () => setDeleted(job),
                  },
                ]}
              />
            )}
          />
        )}
      </Loaded>
      {isAdding && <NewJob owner={owner} onClose={() => setAdding(false)} />}
      {deleted !== undefined && (
        <Confirm
          title={`Delete ${deleted.name || dataSetOf(owner, deleted)}`}
          call={call("DELETE", deleted)}
          submit="Delete the job"
          done="The job was deleted"
          invalidates={[owner.path]}
          onClose={() => setDeleted(undefined)}
        >
          <p>Events that are not uploaded yet are lost.</p>
        </Confirm>
      )}
    </Page>
  );
}

const JobState = ({ of: job }: { of: Job }) =>
  isFailing(job) ? (
    <>
      <State tone="bad">fails</State>
      <br />
      <small>{job.error_message}</small>
    </>
  ) : (
    <State tone={job.enabled ? "ok" : "off"}>{job.enabled ? "on" : "paused"}</State>
  );

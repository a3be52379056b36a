import { useState } from "preact/hooks";
import { AsCode, Code } from "../../code/as-code.tsx";
import { useAction } from "../../core/action.ts";
import { useGet } from "../../core/cache.ts";
import { useShortcuts } from "../../core/keys.ts";
import { useRefusal } from "../../core/permissions.ts";
import { href, useSearch } from "../../core/router.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { SelectField } from "../../parts/form.tsx";
import { Card, Facts, Notice, Page, Time } from "../../parts/layout.tsx";
import { Icon, type IconName } from "../../parts/icon.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { EventDialog } from "./event.tsx";
import { isTimed } from "./scale.ts";
import { InstanceStatus } from "./status.tsx";
import { StepPanel } from "./step-panel.tsx";
import { keyOf, Timeline } from "./timeline.tsx";
import { impossible, isFinal, placeOf, type Change, type InstanceDetails } from "./workflow.ts";

const one = "/accounts/{account_id}/workflows/{workflow_name}/instances/{instance_id}";
const liveMs = 1000;

/** One instance: its state, its timeline, and its actions. */
export default function InstanceScreen({ account, params }: ScreenProps) {
  const { workflow = "", instance = "" } = params;
  const path = `/accounts/${account}/workflows/${encodeURIComponent(workflow)}/instances/${encodeURIComponent(instance)}`;
  const [isLive, setLive] = useState(true);
  const details = useGet<InstanceDetails>(path, isLive ? { everyMs: liveMs } : {});
  const [open, setOpen] = useSearch("step");
  const data = details.data;
  const isRunning = data !== undefined && !isFinal(data.status);
  if (data !== undefined && isRunning !== isLive) setLive(isRunning);
  const steps = data?.steps.filter(isTimed) ?? [];
  const failed = steps.find(({ error }) => error !== null);
  const chosen = steps.find((step) => keyOf(step) === open);
  return (
    <Page
      title={instance}
      up={{ name: workflow, path: `/${account}/workflows/${encodeURIComponent(workflow)}` }}
      about={data && <InstanceStatus status={data.status} />}
      actions={data && <Actions account={account} workflow={workflow} instance={instance} details={data} />}
    >
      <Loaded of={details}>
        {(shown) => (
          <div class="stack">
            {shown.error !== null && (
              <Notice
                tone="bad"
                actions={
                  failed && <Button onPress={() => setOpen(keyOf(failed), false)}>Go to the error</Button>
                }
              >
                <strong>{shown.error.name}</strong>: {shown.error.message}
              </Notice>
            )}
            {shown.warnings.map((warning) => (
              <Notice key={warning} tone="warn">
                {warning}
              </Notice>
            ))}
            {steps.length === 0 ? (
              <Empty icon="workflows" title="No step has begun" />
            ) : (
              <Timeline
                details={shown}
                isLive={isRunning}
                open={open}
                onOpen={(step) => setOpen(keyOf(step), false)}
              />
            )}
            <About details={shown} />
          </div>
        )}
      </Loaded>
      {chosen !== undefined && (
        <StepPanel
          account={account}
          workflow={workflow}
          instance={instance}
          step={chosen}
          onClose={() => setOpen("")}
        />
      )}
    </Page>
  );
}

const About = ({ details }: { details: InstanceDetails }) => (
  <div class="cards wide">
    <Card title="Instance">
      <Facts
        facts={[
          ["Started by", details.trigger.source],
          ["Queued", <Time at={details.queued} />],
          ["Began", details.start === null ? "not yet" : <Time at={details.start} />],
          ["Ended", details.end === null ? "not yet" : <Time at={details.end} />],
          ["Version", <code>{details.versionId}</code>],
        ]}
      />
    </Card>
    <Card title="Parameters">
      <Code text={JSON.stringify(details.params, null, 2)} label="Parameters" />
    </Card>
    {details.output !== null && (
      <Card title="Output">
        <Code text={JSON.stringify(details.output, null, 2)} label="Output" />
      </Card>
    )}
  </div>
);

const changes: readonly { change: Change; label: string; icon: IconName }[] = [
  { change: "pause", label: "Pause", icon: "pause" },
  { change: "resume", label: "Resume", icon: "play" },
  { change: "restart", label: "Restart", icon: "refresh" },
  { change: "terminate", label: "Terminate", icon: "close" },
];

interface ActionsProps {
  account: string;
  workflow: string;
  instance: string;
  details: InstanceDetails;
}

function Actions({ account, workflow, instance, details: { status, steps } }: ActionsProps) {
  const [isSending, setSending] = useState(false);
  const [asked, setAsked] = useState<"restart" | "terminate" | undefined>(undefined);
  const [from, setFrom] = useState("");
  const places = steps.filter(isTimed).filter(({ type }) => type !== "rollback");
  const place = places.find((step) => keyOf(step) === from);
  const refusal = useRefusal();
  const op = `PATCH ${one}/status`;
  const params = { account_id: account, workflow_name: workflow, instance_id: instance };
  const path = `/accounts/${account}/workflows/${encodeURIComponent(workflow)}`;
  const action = useAction({ invalidates: [path], tellsFailure: true });
  const ended = isFinal(status) ? `it is ${status}` : undefined;
  const refusalOf = (change: Change): string | undefined => refusal(op) ?? impossible(change, status);
  const ask = (change: "restart" | "terminate") => () => refusalOf(change) === undefined && setAsked(change);
  useShortcuts([
    { keys: "r", label: "Restart the instance", run: ask("restart") },
    { keys: "t", label: "Terminate the instance", run: ask("terminate") },
  ]);
  return (
    <>
      <a
        class="button"
        href={href(`/${account}/audit?days=30&resource=${encodeURIComponent(instance)}`)}
        title="Who started, restarted or ended it"
      >
        <Icon name="audit" />
        History
      </a>
      <AsCode call={{ op, params, body: { status: isFinal(status) ? "restart" : "terminate" } }} />
      <Button icon="upload" refusal={refusal(`POST ${one}/events`) ?? ended} onPress={() => setSending(true)}>
        Send an event
      </Button>
      {changes.map(({ change, label, icon }) => (
        <Button
          key={change}
          icon={icon}
          kind={change === "terminate" ? "bad" : "plain"}
          refusal={refusalOf(change)}
          isBusy={action.isBusy}
          onPress={() => {
            if (change === "restart" || change === "terminate") setAsked(change);
            else void action.run({ op, params, body: { status: change } });
          }}
        >
          {label}
        </Button>
      ))}
      {asked !== undefined && (
        <Confirm
          title={`${asked === "restart" ? "Restart" : "Terminate"} ${instance}`}
          submit={asked === "restart" ? "Restart" : "Terminate"}
          call={{
            op,
            params,
            body: { status: asked, ...(asked === "restart" && place && { from: placeOf(place) }) },
          }}
          done={asked === "restart" ? "The instance was restarted" : "The instance was terminated"}
          invalidates={[path]}
          onClose={() => setAsked(undefined)}
        >
          {asked === "restart" ? (
            <>
              <SelectField
                label="From"
                value={from}
                onChange={setFrom}
                options={[
                  { value: "", label: "the first step" },
                  ...places.map((step) => ({
                    value: keyOf(step),
                    label: `${step.name}${step.error === null ? "" : " (failed)"}`,
                  })),
                ]}
              />
              <p>
                {place === undefined
                  ? "Its steps are forgotten, with their attempts and errors, and all of them run again."
                  : "Earlier steps keep their outputs. This step and later ones are forgotten, with their attempts and errors, and run again."}
              </p>
            </>
          ) : (
            <p>It runs no further step.</p>
          )}
        </Confirm>
      )}
      {isSending && <EventDialog params={params} path={path} onClose={() => setSending(false)} />}
    </>
  );
}

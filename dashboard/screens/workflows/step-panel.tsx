import { useState } from "preact/hooks";
import { AsCode, Code } from "../../code/as-code.tsx";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Facts, Notice, State, Time } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { lengthOf } from "./scale.ts";
import { StepState } from "./timeline.tsx";
import { placeOf, type TimedStep } from "./workflow.ts";

const one = "/accounts/{account_id}/workflows/{workflow_name}/instances/{instance_id}";

interface PanelProps {
  account: string;
  workflow: string;
  instance: string;
  step: TimedStep;
  onClose: () => void;
}

/** One step: its attempts with their errors, its whole output, and a restart from it. */
export function StepPanel({ account, workflow, instance, step, onClose }: PanelProps) {
  const path = `/accounts/${account}/workflows/${encodeURIComponent(workflow)}/instances`;
  const op = `PATCH ${one}/status`;
  const refusal = useRefusal()(op);
  const [isRestarting, setRestarting] = useState(false);
  const call = {
    op,
    params: { account_id: account, workflow_name: workflow, instance_id: instance },
    body: { status: "restart", from: placeOf(step) },
  };
  const output = outputPath(`${path}/${encodeURIComponent(instance)}`, step);
  if (isRestarting)
    return (
      <Confirm
        title={`Restart from ${step.name}`}
        submit="Restart"
        call={call}
        done="The instance starts again"
        invalidates={[path]}
        onDone={onClose}
        onClose={() => setRestarting(false)}
      >
        <p>
          Earlier steps keep their outputs. This step and later ones are forgotten, with their attempts and
          errors, and run again.
        </p>
      </Confirm>
    );
  return (
    <Dialog title={step.name} kind="side" onClose={onClose}>
      <div class="stack">
        <Facts
          facts={[
            ["State", <StepState step={step} />],
            ["Began", <Time at={step.start} />],
            ...(step.type === "waitForEvent"
              ? ([["Waits for", <code>{step.event_type}</code>]] as const)
              : []),
          ]}
        />
        {step.error !== null && (
          <Notice tone="bad">
            <strong>{step.error.name}</strong>: {step.error.message}
          </Notice>
        )}
        {"attempts" in step && <Attempts step={step} />}
        {output !== undefined && <Output path={output} />}
        {"config" in step && Object.keys(step.config).length > 0 && (
          <>
            <h3>Configuration</h3>
            <Code text={JSON.stringify(step.config, null, 2)} label="Configuration" />
          </>
        )}
        {step.type !== "rollback" && (
          <div class="row">
            <AsCode call={call} />
            <Button icon="refresh" refusal={refusal} onPress={() => setRestarting(true)}>
              Restart from here
            </Button>
          </div>
        )}
      </div>
    </Dialog>
  );
}

/** The address of the whole output; undefined where there is none. */
function outputPath(base: string, step: TimedStep): string | undefined {
  const isThere =
    (step.type === "step" && step.success === true) || (step.type === "waitForEvent" && step.finished);
  if (!isThere || step.error !== null) return undefined;
  return `${base}/step?${new URLSearchParams({ name: step.name, type: step.type })}`;
}

function Output({ path }: { path: string }) {
  const result = useGet<{ output: unknown }>(path);
  return (
    <>
      <h3>Output</h3>
      <Loaded of={result} rows={2}>
        {({ output }) => <Code text={JSON.stringify(output, null, 2)} label="Output" />}
      </Loaded>
    </>
  );
}

const Attempts = ({ step }: { step: Extract<TimedStep, { attempts: unknown }> }) => (
  <>
    <h3>Attempts</h3>
    <ol class="attempts">
      {step.attempts.map(({ start, end, success, error }) => (
        <li key={start}>
          <State tone={success === null ? "info" : success ? "ok" : "bad"}>
            {success === null ? "running" : success ? "done" : "failed"}
          </State>{" "}
          <span class="faint">
            <Time at={start} />
            {end !== null && `, ${lengthOf(Date.parse(end) - Date.parse(start))}`}
          </span>
          {error !== null && (
            <p>
              <strong>{error.name}</strong>: {error.message}
            </p>
          )}
        </li>
      ))}
    </ol>
  </>
);

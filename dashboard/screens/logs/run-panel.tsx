import { Code } from "../../code/as-code.tsx";
import { clockOf, duration } from "../../core/format.ts";
import { href } from "../../core/router.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { Copyable, Facts, Notice, State, Time } from "../../parts/layout.tsx";
import { askedOf, tracePath } from "../trace/request.ts";
import { endOf, lineOf, titleOf, toneOf, type Run } from "./run.ts";

const tones: Record<string, "bad" | "warn" | "info" | "off"> = { error: "bad", warn: "warn", info: "info" };

/** All data of one run from its tail event. */
export const RunPanel = ({ account, run, onClose }: { account: string; run: Run; onClose: () => void }) => (
  <Dialog title={titleOf(run)} kind="side" onClose={onClose}>
    {run.truncated && <Notice tone="warn">The run logged more than is kept. The rest was dropped.</Notice>}
    {run.exceptions.map((exception, index) => (
      <Code
        key={index}
        text={exception.stack ?? `${exception.name}: ${exception.message}`}
        label={`Exception ${index + 1}`}
      />
    ))}
    {run.logs.length > 0 && (
      <ol class="log-lines" tabIndex={0} aria-label="Output">
        {run.logs.map((log, index) => (
          <li key={index}>
            <span class="faint">{clockOf(log.timestamp)}</span>{" "}
            <State tone={tones[log.level] ?? "off"}>{log.level}</State> <code>{lineOf(log)}</code>
          </li>
        ))}
      </ol>
    )}
    <Facts facts={factsOf(run)} />
    {run.event?.request && (
      <>
        <details>
          <summary>Headers of the request</summary>
          <Facts facts={Object.entries(run.event.request.headers)} />
        </details>
        <p>
          <a href={href(tracePath(account, askedOf(run.event.request)))}>Trace this request</a>
        </p>
      </>
    )}
  </Dialog>
);

function factsOf(run: Run) {
  const { event } = run;
  return [
    ["End", <State tone={toneOf(run)}>{endOf(run)}</State>],
    ["Began", <Time at={run.eventTimestamp} />],
    ...(run.wallTime === undefined ? [] : [["Took", duration(run.wallTime)] as const]),
    ...(event?.request === undefined ? [] : [["Address", <Copyable text={event.request.url} />] as const]),
    ...(run.scriptName === null ? [] : [["Script", run.scriptName] as const]),
    ...(run.dispatchNamespace === undefined ? [] : [["Namespace", run.dispatchNamespace] as const]),
    ...(run.entrypoint === undefined ? [] : [["Entrypoint", run.entrypoint] as const]),
    ...(run.scriptVersion === undefined
      ? []
      : [["Version", <Copyable text={run.scriptVersion.id} />] as const]),
    ...(run.durableObjectId === undefined
      ? []
      : [["Object", <Copyable text={run.durableObjectId} />] as const]),
    ...(run.traceId === undefined ? [] : [["Trace", <Copyable text={run.traceId} />] as const]),
  ] as const;
}

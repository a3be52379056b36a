import { useEffect, useMemo, useState } from "preact/hooks";
import { rowsOf } from "../../core/pages.ts";
import { Grid, type Column } from "../../parts/grid.tsx";
import { State } from "../../parts/layout.tsx";
import { isTimed, lengthOf, scaleOf, spansOf, type Scale, type Span } from "./scale.ts";
import type { InstanceDetails, TimedStep } from "./workflow.ts";

const percent = (part: number): string => `${(part * 100).toFixed(3)}%`;
/** Places an element between two parts of the width. */
const placed =
  (from: number, to: number) =>
  (element: HTMLElement | null): void => {
    element?.style.setProperty("left", percent(from));
    element?.style.setProperty("width", percent(Math.max(0, to - from)));
  };

const Ruler = ({ scale }: { scale: Scale }) => (
  <span class="ruler">
    <span>0</span>
    {scale.folds.map((fold) => (
      <span key={fold.from} class="fold" ref={placed(fold.from, fold.to)}>
        ‖ {lengthOf(fold.ms)}
      </span>
    ))}
    <span>{lengthOf(scale.to - scale.from)}</span>
  </span>
);

const Bar = ({ spans, scale }: { spans: readonly Span[]; scale: Scale }) => (
  <span class="time-bar" aria-hidden="true">
    {spans.map((span, index) => (
      <span key={index} class={`span ${span.kind}`} ref={placed(scale.at(span.from), scale.at(span.to))} />
    ))}
  </span>
);

/** The state of a step, in words. */
export function StepState({ step }: { step: TimedStep }) {
  if (step.error !== null) return <State tone="bad">failed</State>;
  if (step.type === "sleep")
    return step.finished ? <State tone="off">slept</State> : <State tone="info">sleeps</State>;
  if (step.type === "waitForEvent")
    return step.finished ? <State tone="ok">came</State> : <State tone="info">waits</State>;
  if (step.success === null) return <State tone="info">running</State>;
  return <State tone="ok">done</State>;
}

function columnsOf(scale: Scale, now: number): Column<TimedStep>[] {
  return [
    {
      key: "name",
      title: "Step",
      width: "minmax(120px, 1fr)",
      cell: ({ name }) => <strong title={name}>{name}</strong>,
    },
    { key: "state", title: "State", width: "96px", cell: (step) => <StepState step={step} /> },
    {
      key: "bar",
      title: <Ruler scale={scale} />,
      width: "minmax(160px, 3fr)",
      cell: (step) => <Bar spans={spansOf(step, now)} scale={scale} />,
    },
    {
      key: "time",
      title: "Time",
      width: "104px",
      isNumber: true,
      cell: (step) => {
        const spans = spansOf(step, now);
        const from = spans[0]?.from ?? Date.parse(step.start);
        return lengthOf(Math.max(0, (spans.at(-1)?.to ?? from) - from));
      },
    },
    {
      key: "attempts",
      title: "Attempts",
      width: "84px",
      isNumber: true,
      isExtra: true,
      cell: (step) => ("attempts" in step ? step.attempts.length : ""),
    },
  ];
}

/** The current time, updated every second while the instance runs. */
function useClock(isRunning: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}

interface TimelineProps {
  details: InstanceDetails;
  isLive: boolean;
  open: string;
  onOpen: (step: TimedStep) => void;
}

/** The steps of an instance, one row each: attempts as bars, sleeps as thin lines, waits as dotted ones. */
export function Timeline({ details, isLive, open, onOpen }: TimelineProps) {
  const now = useClock(isLive);
  const steps = useMemo(() => details.steps.filter(isTimed), [details]);
  const begin = Date.parse(details.start ?? details.queued);
  const end = details.end === null ? now : Date.parse(details.end);
  const scale = useMemo(
    () =>
      scaleOf(
        steps.flatMap((step) => spansOf(step, now)),
        begin,
        end,
      ),
    [steps, now, begin, end],
  );
  return (
    <Grid
      label="Timeline"
      columns={columnsOf(scale, now)}
      rows={rowsOf(steps)}
      keyOf={keyOf}
      openKey={open}
      onOpen={onOpen}
    />
  );
}

/** Names of steps are unique within their type. */
export const keyOf = ({ type, name }: TimedStep): string => `${type}:${name}`;

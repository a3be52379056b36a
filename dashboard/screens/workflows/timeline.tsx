import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { rowsOf } from "../../core/pages.ts";
import { count } from "../../core/format.ts";
import { useSearch } from "../../core/router.ts";
import { Filter } from "../../parts/filter.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { State } from "../../parts/layout.tsx";
import { Empty } from "../../parts/states.tsx";
import { isTimed, lengthOf, marksOf, placeLabels, scaleOf, spansOf, type Scale, type Span } from "./scale.ts";
import type { InstanceDetails, TimedStep } from "./workflow.ts";

const percent = (part: number): string => `${(part * 100).toFixed(3)}%`;
/** Places an element between two parts of the width. */
const placed =
  (from: number, to: number) =>
  (element: HTMLElement | null): void => {
    element?.style.setProperty("left", percent(from));
    element?.style.setProperty("width", percent(Math.max(0, to - from)));
  };

/** The axis. Labels that would touch more important ones are left out. */
function Ruler({ scale }: { scale: Scale }) {
  const ruler = useRef<HTMLSpanElement>(null);
  const marks = marksOf(scale);
  const place = (): void => {
    const labels = [...ruler.current!.querySelectorAll<HTMLElement>(".mark-label")];
    const measured = labels.map((label, index) => ({
      place: marks[index]!.place,
      width: label.offsetWidth,
    }));
    const lefts = placeLabels(measured, ruler.current!.clientWidth);
    labels.forEach((label, index) => {
      label.style.left = `${lefts[index] ?? 0}px`;
      label.style.visibility = lefts[index] === undefined ? "hidden" : "visible";
    });
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(place);
    observer.observe(ruler.current!);
    place();
    return () => observer.disconnect();
  });
  return (
    <span class="ruler" ref={ruler}>
      <span class="unseen">Time since the start:</span>
      {marks.map(({ text, isFold }, index) => (
        <span key={index} class="mark-label">
          {isFold ? `‖ ${text} ‖` : text}
        </span>
      ))}
    </span>
  );
}

const verbs: Record<Span["kind"], string> = {
  done: "worked",
  failed: "failed",
  open: "works",
  sleep: "sleeps",
  wait: "waits",
};

const Bar = ({ spans, scale }: { spans: readonly Span[]; scale: Scale }) => {
  const since = (ms: number): string => lengthOf(Math.max(0, ms - scale.from));
  const text = spans.map(({ kind, from, to }) => `${verbs[kind]} from ${since(from)} to ${since(to)}`);
  return (
    <span class="time-bar" role="img" aria-label={text.join(", ") || "not begun"}>
      {scale.folds.map((fold) => (
        <span key={fold.start} class="fold" ref={placed(fold.from, fold.to)} />
      ))}
      {spans.map((span, index) => (
        <span key={index} class={`span ${span.kind}`} ref={placed(scale.at(span.from), scale.at(span.to))} />
      ))}
    </span>
  );
};

const legends = [
  ["failed", "failed attempt"],
  ["sleep", "sleeps"],
  ["wait", "waits for an event"],
] as const;

/** The meaning of the lines and bands of the bars, as far as there are any. */
const Legend = ({ spans, scale }: { spans: readonly Span[]; scale: Scale }) => (
  <ul class="legend" aria-label="Legend">
    {legends
      .filter(([kind]) => spans.some((span) => span.kind === kind))
      .map(([kind, text]) => (
        <li key={kind}>
          <span class="time-bar" aria-hidden="true">
            <span class={`span ${kind}`} />
          </span>
          {text}
        </li>
      ))}
    {scale.folds.length > 0 && (
      <li>
        <span class="time-bar" aria-hidden="true">
          <span class="fold" />
        </span>
        ‖ a time without work, drawn shorter than it was
      </li>
    )}
  </ul>
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
      isBelow: true,
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

/** Fewer steps are seen at a glance. */
const findableMin = 12;

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
  const [find, setFind] = useSearch("find");
  const found = useMemo(() => {
    const text = find.toLowerCase();
    return text === "" ? steps : steps.filter(({ name }) => name.toLowerCase().includes(text));
  }, [steps, find]);
  const begin = Date.parse(details.start ?? details.queued);
  const end = details.end === null ? now : Date.parse(details.end);
  const spans = useMemo(() => steps.flatMap((step) => spansOf(step, now)), [steps, now]);
  const scale = useMemo(() => scaleOf(spans, begin, end), [spans, begin, end]);
  return (
    <div>
      {(steps.length >= findableMin || find !== "") && (
        <div class="toolbar">
          <Filter label="Find steps by name" placeholder="Find a step" value={find} onChange={setFind} />
          <span class="faint" role="status">
            {find === ""
              ? `${count(steps.length)} steps`
              : `${count(found.length)} of ${count(steps.length)} steps`}
          </span>
        </div>
      )}
      {found.length === 0 ? (
        <Empty icon="search" title={`No step has "${find}" in its name`} />
      ) : (
        <Grid
          label="Timeline"
          columns={columnsOf(scale, now)}
          rows={rowsOf(found)}
          keyOf={keyOf}
          openKey={open}
          onOpen={onOpen}
        />
      )}
      <Legend spans={spans} scale={scale} />
    </div>
  );
}

/** Names of steps are unique within their type. */
export const keyOf = ({ type, name }: TimedStep): string => `${type}:${name}`;

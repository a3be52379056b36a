import type { Step, TimedStep } from "./workflow.ts";

/** A part of a step's bar, in milliseconds since 1970. */
export interface Span {
  kind: "done" | "failed" | "open" | "sleep" | "wait";
  from: number;
  to: number;
}

/** A time without work that is drawn shorter than it was. */
export interface Fold {
  /** Its place from 0 to 1. */
  from: number;
  to: number;
  /** Its beginning, in milliseconds since 1970, and its length. */
  start: number;
  ms: number;
}

export interface Scale {
  from: number;
  to: number;
  folds: readonly Fold[];
  /** The place of a time, from 0 to 1. */
  at: (ms: number) => number;
}

/** A longer share of the whole time is folded. */
const idleShare = 0.2;
/** The width of a fold between work, as a share of the whole. */
const foldWidth = 0.08;
/** The width of a fold at the end. It shows what the instance waits for now, so it has more room. */
const lastFoldWidth = 0.4;
/** All folds together have no more of the width. */
const foldsMax = 0.8;

export const isTimed = (step: Step): step is TimedStep => step.type !== "termination";

/** The parts of a step: its attempts, its sleep, or its wait. */
export function spansOf(step: TimedStep, now: number): Span[] {
  if (step.type === "sleep" || step.type === "waitForEvent") {
    const until = Date.parse(step.end);
    const kind = step.type === "sleep" ? "sleep" : "wait";
    return [{ kind, from: Date.parse(step.start), to: step.finished ? until : Math.min(until, now) }];
  }
  return step.attempts.map(({ start, end, success }) => ({
    kind: success === null ? "open" : success ? "done" : "failed",
    from: Date.parse(start),
    to: end === null ? now : Date.parse(end),
  }));
}

interface Gap {
  from: number;
  to: number;
}

const lengthsOf = (gaps: readonly Gap[]): number => gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);

/** The times between `from` and `to` in which nothing works. */
function gapsOf(busy: readonly Span[], from: number, to: number): Gap[] {
  const gaps: Gap[] = [];
  let reached = from;
  for (const span of busy.toSorted((a, b) => a.from - b.from)) {
    if (span.from > reached) gaps.push({ from: reached, to: span.from });
    reached = Math.max(reached, span.to);
  }
  if (to > reached) gaps.push({ from: reached, to });
  return gaps;
}

/** A scale for the spans of all steps, on which long times without work are folded. */
export function scaleOf(spans: readonly Span[], begin: number, end: number): Scale {
  const from = Math.min(begin, ...edges(spans, "from"));
  const to = Math.max(end, from + 1, ...edges(spans, "to"));
  const busy = spans.filter(({ kind }) => kind !== "sleep" && kind !== "wait");
  const widthOf = (gap: { to: number }): number => (gap.to === to ? lastFoldWidth : foldWidth);
  const folded: Gap[] = [];
  // A fold makes the rest longer, and so a time that was short beside it may be most of what is left.
  for (let more = gapsOf(busy, from, to); more.length > 0;) {
    const rest = to - from - lengthsOf(folded);
    const long = more.filter((gap) => gap.to - gap.from > rest * Math.max(idleShare, widthOf(gap)));
    const room = foldsMax - folded.reduce((sum, gap) => sum + widthOf(gap), 0);
    // Work of no time at all has no width: something else must be left to spread it.
    if (long.length === 0 || lengthsOf(long) >= rest) break;
    if (long.reduce((sum, gap) => sum + widthOf(gap), 0) > room) break;
    folded.push(...long);
    more = more.filter((gap) => !folded.includes(gap));
  }
  folded.sort((a, b) => a.from - b.from);
  const idle = lengthsOf(folded);
  // Folding makes room for work; without work, nothing is folded.
  const isFolded = folded.length > 0 && busy.length > 0 && to - from > idle;
  const gaps = isFolded ? folded : [];
  const perMs = (1 - gaps.reduce((sum, gap) => sum + widthOf(gap), 0)) / (to - from - (isFolded ? idle : 0));
  const at = (ms: number): number => {
    let place = 0;
    let reached = from;
    for (const gap of gaps) {
      if (ms <= gap.from) break;
      place += (gap.from - reached) * perMs;
      place += widthOf(gap) * Math.min(1, (ms - gap.from) / (gap.to - gap.from));
      reached = Math.min(ms, gap.to);
    }
    return Math.min(1, Math.max(0, place + (Math.max(reached, ms) - reached) * perMs));
  };
  return {
    from,
    to,
    at,
    folds: gaps.map((gap) => ({
      from: at(gap.from),
      to: at(gap.to),
      start: gap.from,
      ms: gap.to - gap.from,
    })),
  };
}

/** A text on the axis, centred at a place from 0 to 1. */
export interface Mark {
  place: number;
  text: string;
  /** Whether the text is the length of the fold that it stands on. */
  isFold: boolean;
}

/** The texts of the axis, the most important first: its ends, the lengths of folds, the times around them. */
export function marksOf({ from, to, folds, at }: Scale): Mark[] {
  const time = (ms: number): Mark => ({ place: at(ms), text: lengthOf(ms - from), isFold: false });
  return [
    { ...time(from), text: "0" },
    time(to),
    ...folds.map((fold) => ({
      place: (fold.from + fold.to) / 2,
      text: lengthOf(fold.ms),
      isFold: true,
    })),
    ...folds.flatMap((fold) => [fold.start, fold.start + fold.ms].map(time)),
    ...(folds.length === 0 ? [time((from + to) / 2)] : []),
  ];
}

const labelGapPx = 12;

/** The left edges of labels in the room. A label that would touch an earlier one has none. */
export function placeLabels(
  labels: readonly { place: number; width: number }[],
  room: number,
): (number | undefined)[] {
  const taken: { from: number; to: number }[] = [];
  return labels.map(({ place, width }) => {
    const from = Math.min(Math.max(0, place * room - width / 2), Math.max(0, room - width));
    const to = from + width;
    if (taken.some((other) => from < other.to + labelGapPx && to > other.from - labelGapPx)) return undefined;
    taken.push({ from, to });
    return from;
  });
}

/** The lowest start or the highest end, as a list of none or one. */
function edges(spans: readonly Span[], side: "from" | "to"): number[] {
  if (spans.length === 0) return [];
  const better = side === "from" ? Math.min : Math.max;
  return [spans.reduce((found, span) => better(found, span[side]), spans[0]![side])];
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** 90061000 → "1 d 1 h" */
export function lengthOf(ms: number): string {
  const first = units.findIndex(([, each]) => ms >= each);
  if (first < 0) return "0 ms";
  const [name, each] = units[first]!;
  const whole = Math.floor(ms / each);
  const next = units[first + 1];
  const rest = next === undefined || name === "s" ? 0 : Math.floor((ms - whole * each) / next[1]);
  if (name === "s" && ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${next![0]}`;
}

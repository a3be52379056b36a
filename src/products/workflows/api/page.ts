import type { InstanceRow } from "../instance.ts";
import type { History } from "../store/journal.ts";
import { shown, shownError, timeline, type TimelineStep } from "./timeline.ts";
import type { Workflow } from "../workflow.ts";

const escape = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
const json = (value: unknown): string => escape(JSON.stringify(value, null, 1));

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1b1b1b}
h1{font-size:1.3rem;margin:0}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:#666}dd{margin:0}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .5rem;border-bottom:1px solid #ddd;vertical-align:top}
td.bar{width:30%}td.bar div{background:#2f6feb;height:.7rem;border-radius:2px;min-width:2px}
tr.failed td.bar div{background:#c62f2f}tr.open td.bar div{background:#b8b8b8}pre{margin:0;white-space:pre-wrap;word-break:break-word;font-size:.85em}
@media(prefers-color-scheme:dark){body{background:#161616;color:#e6e6e6}th,td{border-color:#333}dt{color:#999}}`;

/** An HTML page of an instance: steps as bars on a time axis, with their attempts, results and errors. */
export function timelinePage(workflow: Workflow, row: InstanceRow, history: History): string {
  const steps = timeline(row, history);
  const begin = row.startedOn ?? row.createdOn;
  const end = Math.max(row.endedOn ?? row.modifiedOn, begin + 1);
  const error = shownError(row.error);
  const fields: [string, string][] = [
    ["Workflow", escape(workflow.name)],
    ["Status", row.status],
    ["Created", new Date(row.createdOn).toISOString()],
    ["Started", row.startedOn === null ? "not yet" : new Date(row.startedOn).toISOString()],
    ["Ended", row.endedOn === null ? "not yet" : new Date(row.endedOn).toISOString()],
    ["Parameters", `<pre>${json(shown(row.params))}</pre>`],
    ...(row.output === null ? [] : [["Output", `<pre>${json(shown(row.output))}</pre>`] as [string, string]]),
    ...(error === null ? [] : [["Error", escape(`${error.name}: ${error.message}`)] as [string, string]]),
    ...history.warnings.map((warning): [string, string] => ["Warning", escape(warning)]),
  ];
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(row.id)}</title><style>${style}</style>
<h1>${escape(row.id)}</h1>
<dl>${fields.map(([name, value]) => `<dt>${name}<dd>${value}`).join("")}</dl>
<table><thead><tr><th>Step<th>Kind<th>Time<th>Duration<th>Attempts<th>Result</thead><tbody>
${steps.map((step) => stepRow(step, begin, end)).join("\n")}
</tbody></table></html>
`;
}

function stepRow(step: TimelineStep, begin: number, end: number): string {
  if (step.type === "termination") return `<tr class="failed"><td>terminated<td>termination<td><td><td><td>`;
  const from = Date.parse(step.start);
  const isOpen = "attempts" in step ? step.end === null : !step.finished;
  const to = isOpen ? end : Math.max(from, Date.parse(step.end ?? step.start));
  const percent = (ms: number): string =>
    `${Math.min(100, Math.max(0, (100 * ms) / (end - begin))).toFixed(2)}%`;
  const kind = step.type === "waitForEvent" ? `waits for ${escape(step.event_type)}` : step.type;
  const result =
    step.error !== null
      ? escape(`${step.error.name}: ${step.error.message}`)
      : step.type === "sleep"
        ? ""
        : escape(step.output ?? "");
  const attempts = "attempts" in step ? String(step.attempts.length) : "";
  const state = step.error === null ? (isOpen ? "open" : "") : "failed";
  const bar = `<div style="margin-left:${percent(from - begin)};width:${percent(to - from)}"></div>`;
  return `<tr class="${state}"><td>${escape(step.name)}<td>${kind}<td class="bar">${bar}<td>${isOpen ? "…" : `${to - from} ms`}<td>${attempts}<td><pre>${result}</pre>`;
}

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { AsCode } from "../../../code/as-code.tsx";
import { useAction } from "../../../core/action.ts";
import { onlyAt, type Call } from "../../../core/client.ts";
import { count, plural } from "../../../core/format.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, Field, Switch, TextField } from "../../../parts/form.tsx";
import { Notice } from "../../../parts/layout.tsx";
import { Table } from "../../../parts/table.tsx";
import { shortName, ttlText } from "./record.ts";

interface Plain {
  name: string;
  type: string;
  content: string;
  priority?: number;
  ttl: number;
  proxied: boolean;
  settings: Record<string, boolean>;
  comment: string | null;
  tags: string[];
}
interface Difference {
  added: { line: number; record: Plain }[];
  changed: { line: number; from: Plain; to: Plain }[];
  refused: { line: number; message: string }[];
  skipped: { line: number; message: string }[];
  counts: { added: number; changed: number; same: number; refused: number; skipped: number };
}

/** A difference, and the tag of the zone's state that it shows. */
interface Compared {
  diff: Difference;
  etag: string | undefined;
}

const op = "POST /zones/{zone_id}/dns_records/import";
const shownMax = 200;
/** Characters of a line of the file that are shown. */
const lineMax = 200;

/** Imports a zone file: shows a preview of the changes first, then applies them. */
export function ImportDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const zone = useZone();
  const [text, setText] = useState("");
  const [isProxied, setProxied] = useState(false);
  const [compared, setCompared] = useState<Compared | undefined>(undefined);
  const file = useRef<HTMLDivElement>(null);
  const wrong = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    if (compared !== undefined || wrong.current === undefined) return;
    selectLine(file.current!.querySelector("textarea")!, wrong.current);
    wrong.current = undefined;
  }, [compared]);
  const body = new FormData();
  body.set("file", new File([text], "zone.txt", { type: "text/plain" }));
  body.set("proxied", String(isProxied));
  const call = { op, params: { zone_id: zone.id }, body } satisfies Call;
  const compare: Call = { ...call, query: { update: true, dry_run: true } };
  return (
    <Dialog title={`Import into ${zone.name}`} kind="wide" onClose={onClose}>
      {compared !== undefined ? (
        <Review
          compared={compared}
          text={text}
          compare={compare}
          apply={{ ...call, query: { update: true } }}
          onCompared={setCompared}
          onBack={() => {
            wrong.current = compared.diff.refused[0]?.line;
            setCompared(undefined);
          }}
          onDone={onDone}
          onClose={onClose}
        />
      ) : (
        <div ref={file}>
          <ActionForm<{ diff: Difference }>
            call={compare}
            submit="Compare"
            refusal={text.trim() === "" ? "paste a zone file or choose one" : undefined}
            onCancel={onClose}
            onDone={({ diff }, etag) => setCompared({ diff, etag })}
          >
            <Field label="File">
              {(attributes) => (
                <input
                  {...attributes}
                  type="file"
                  onChange={(event) => void event.currentTarget.files?.[0]?.text().then(setText)}
                />
              )}
            </Field>
            <TextField
              label="Zone file"
              name="file"
              value={text}
              onChange={setText}
              rows={12}
              isMono
              placeholder="www 300 IN A 192.0.2.1"
            />
            <Switch
              label="Proxied"
              hint="For new A, AAAA and CNAME records, unless the file says otherwise."
              isOn={isProxied}
              onChange={setProxied}
            />
          </ActionForm>
        </div>
      )}
    </Dialog>
  );
}

/** Selects a line of a text, and scrolls to it. */
function selectLine(field: HTMLTextAreaElement, line: number): void {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  field.focus();
  field.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  field.scrollTop = (field.scrollHeight / lines.length) * (line - 3);
}

interface ReviewProps {
  compared: Compared;
  /** The zone file. */
  text: string;
  compare: Call;
  apply: Call;
  onCompared: (compared: Compared) => void;
  onBack: () => void;
  onDone: () => void;
  onClose: () => void;
}

interface Line {
  line: number;
  kind: "added" | "changed" | "refused" | "skipped";
  text: string;
  /** The record before the change; the line of the file, if it is left out. */
  before: string;
}

/** A record as a line: value, TTL, and the attributes that it has. */
function words(zone: string, { name, type, content, priority, ttl, ...more }: Plain): string {
  const value = `${shortName(name, zone)} ${type} ${priority === undefined ? "" : `${priority} `}${content}`;
  const settings = Object.entries(more.settings).flatMap(([key, isOn]) => (isOn ? [key] : []));
  return [
    value,
    ttlText(ttl),
    ...(more.proxied ? ["proxied"] : []),
    ...settings,
    ...(more.comment === null ? [] : [`comment “${more.comment}”`]),
    ...(more.tags.length === 0 ? [] : [`tags ${more.tags.join(" ")}`]),
  ].join(", ");
}

function linesOf(
  { added, changed, refused, skipped }: Difference,
  zone: string,
  file: readonly string[],
): Line[] {
  const leftOut = (kind: "refused" | "skipped", lines: Difference["refused"]): Line[] =>
    lines.map(({ line, message }) => ({
      line,
      kind,
      text: message,
      before: file[line - 1]?.trim().slice(0, lineMax) ?? "",
    }));
  return [
    ...leftOut("refused", refused),
    ...changed.map(({ line, from, to }): Line => ({
      line,
      kind: "changed",
      text: words(zone, to),
      before: words(zone, from),
    })),
    ...leftOut("skipped", skipped),
    ...added.map(({ line, record }): Line => ({
      line,
      kind: "added",
      text: words(zone, record),
      before: "",
    })),
  ];
}

/** The differences of the file, line by line, and the button that makes exactly these in one transaction. */
function Review({ compared, text, compare, apply, onCompared, onBack, onDone, onClose }: ReviewProps) {
  const zone = useZone();
  const { counts } = compared.diff;
  const done = `Imported: ${plural(counts.added, "new record")}, ${count(counts.changed)} changed`;
  const action = useAction({ invalidates: [`/zones/${zone.id}`], done });
  const again = useAction({ tellsFailure: true });
  const lines = linesOf(compared.diff, zone.name, text.split("\n"));
  const listed = counts.refused + counts.changed + counts.skipped + counts.added;
  const refusal =
    counts.refused > 0
      ? "correct the refused lines first"
      : counts.added + counts.changed === 0
        ? "nothing would change"
        : undefined;
  // Refused if the zone has changed: the differences would be others.
  const call = onlyAt(compared.etag, apply);
  const run = async (): Promise<void> => {
    if ((await action.run(call)) === undefined) return;
    onDone();
    onClose();
  };
  const compareAgain = async (): Promise<void> => {
    const answer = await again.run<{ diff: Difference }>(compare);
    if (answer === undefined) return;
    action.clear();
    onCompared({ diff: answer.result.diff, etag: answer.etag });
  };
  return (
    <div class="stack">
      <Notice tone={counts.refused > 0 ? "bad" : "info"}>
        Nothing has changed yet: {count(counts.added)} to add, {count(counts.changed)} to change,{" "}
        {count(counts.same)} the same, {plural(counts.refused, "line")} refused, {count(counts.skipped)}{" "}
        skipped.{counts.refused > 0 && " Correct the refused lines first."}
        {listed > shownMax && ` The list has the first ${shownMax} of ${count(listed)} lines.`}
      </Notice>
      {lines.length > 0 && <Differences lines={lines.slice(0, shownMax)} />}
      {action.failure?.status === 412 ? (
        <div role="alert">
          <Notice
            tone="warn"
            actions={
              <Button isBusy={again.isBusy} onPress={() => void compareAgain()}>
                Compare again
              </Button>
            }
          >
            The zone was changed meanwhile. Nothing was imported.
          </Notice>
        </div>
      ) : (
        action.failure !== undefined && (
          <p class="form-failure" role="alert">
            {action.failure.message}
          </p>
        )
      )}
      <footer class="form-foot">
        <AsCode call={call} />
        <span class="spacer" />
        <Button onPress={onBack}>Back to the file</Button>
        <Button kind="primary" refusal={refusal} isBusy={action.isBusy} onPress={() => void run()}>
          Apply
        </Button>
      </footer>
    </div>
  );
}

const effects: Record<Line["kind"], string> = {
  added: "add",
  changed: "change",
  refused: "refused",
  skipped: "skipped",
};

const Differences = ({ lines }: { lines: readonly Line[] }) => (
  <Table
    label="Differences"
    rows={lines}
    keyOf={({ line, kind, text }) => `${kind} ${line} ${text}`}
    columns={[
      { title: "Line", isNumber: true, cell: ({ line }) => line },
      { title: "Effect", cell: ({ kind }) => effects[kind] },
      {
        title: "Record",
        isWide: true,
        cell: ({ kind, text, before }) => (
          <span class="changes">
            {before !== "" && (
              <>
                {kind === "changed" ? <del>{before}</del> : <code>{before}</code>}
                <br />
              </>
            )}
            {kind === "refused" ? (
              <span class="error">{text}</span>
            ) : kind === "skipped" ? (
              <span class="faint">{text}</span>
            ) : (
              <ins>{text}</ins>
            )}
          </span>
        ),
      },
    ]}
  />
);

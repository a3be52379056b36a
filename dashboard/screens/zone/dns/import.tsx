import { useState } from "preact/hooks";
import { useAction } from "../../../core/action.ts";
import type { Call } from "../../../core/client.ts";
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
}
interface Difference {
  added: { line: number; record: Plain }[];
  changed: { line: number; from: Plain; to: Plain }[];
  refused: { line: number; message: string }[];
  skipped: { line: number; message: string }[];
  counts: { added: number; changed: number; same: number; refused: number; skipped: number };
}

const op = "POST /zones/{zone_id}/dns_records/import";
const shownMax = 200;

/** Imports a zone file: shows a preview of the changes first, then applies them. */
export function ImportDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const zone = useZone();
  const [text, setText] = useState("");
  const [isProxied, setProxied] = useState(false);
  const [diff, setDiff] = useState<Difference | undefined>(undefined);
  const body = new FormData();
  body.set("file", new File([text], "zone.txt", { type: "text/plain" }));
  body.set("proxied", String(isProxied));
  const call: Call = { op, params: { zone_id: zone.id }, body };
  return (
    <Dialog title={`Import into ${zone.name}`} kind="wide" onClose={onClose}>
      {diff !== undefined ? (
        <Review diff={diff} call={call} onBack={() => setDiff(undefined)} onDone={onDone} onClose={onClose} />
      ) : (
        <ActionForm<{ diff: Difference }>
          call={{ ...call, query: { dry_run: true } }}
          submit="Compare"
          refusal={text.trim() === "" ? "paste a zone file or choose one" : undefined}
          onCancel={onClose}
          onDone={(answer) => setDiff(answer.diff)}
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
            hint="For A, AAAA and CNAME records of the file."
            isOn={isProxied}
            onChange={setProxied}
          />
        </ActionForm>
      )}
    </Dialog>
  );
}

interface ReviewProps {
  diff: Difference;
  call: Call;
  onBack: () => void;
  onDone: () => void;
  onClose: () => void;
}

interface Line {
  line: number;
  kind: "added" | "changed" | "refused" | "skipped";
  text: string;
  before: string;
}

/** The differences of the file, line by line, and the button that applies them in one transaction. */
function Review({ diff, call, onBack, onDone, onClose }: ReviewProps) {
  const zone = useZone();
  const action = useAction({
    invalidates: [`/zones/${zone.id}`],
    done: "The zone file was imported",
    tellsFailure: true,
  });
  const words = ({ name, type, content, priority, ttl, proxied }: Plain): string =>
    `${shortName(name, zone.name)} ${type} ${priority === undefined ? "" : `${priority} `}${content}, ${ttlText(ttl)}${proxied ? ", proxied" : ""}`;
  const { counts } = diff;
  const lines: Line[] = [
    ...diff.refused.map(({ line, message }) => ({
      line,
      kind: "refused" as const,
      text: message,
      before: "",
    })),
    ...diff.changed.map(({ line, from, to }) => ({
      line,
      kind: "changed" as const,
      text: words(to),
      before: words(from),
    })),
    ...diff.skipped.map(({ line, message }) => ({
      line,
      kind: "skipped" as const,
      text: message,
      before: "",
    })),
    ...diff.added.map(({ line, record }) => ({
      line,
      kind: "added" as const,
      text: words(record),
      before: "",
    })),
  ];
  const listed = counts.refused + counts.changed + counts.skipped + counts.added;
  const refusal =
    counts.refused > 0
      ? "mend the refused lines first"
      : counts.added + counts.changed === 0
        ? "nothing would change"
        : undefined;
  const apply = async (): Promise<void> => {
    if ((await action.run(call)) === undefined) return;
    onDone();
    onClose();
  };
  return (
    <div class="stack">
      <Notice tone={counts.refused > 0 ? "bad" : "info"}>
        {count(counts.added)} added, {count(counts.changed)} changed, {count(counts.same)} the same,{" "}
        {plural(counts.refused, "line")} refused, {count(counts.skipped)} skipped. Nothing has changed yet.
        {listed > shownMax && ` The list has the first ${shownMax} of ${count(listed)} lines.`}
      </Notice>
      {lines.length > 0 && (
        <Table
          label="Differences"
          rows={lines.slice(0, shownMax)}
          keyOf={({ line, kind }) => `${kind} ${line}`}
          columns={[
            { title: "Line", isNumber: true, cell: ({ line }) => line },
            { title: "Effect", cell: ({ kind }) => kind },
            {
              title: "Record",
              isWide: true,
              cell: ({ kind, text, before }) => (
                <span class="changes">
                  {before !== "" && (
                    <>
                      <del>{before}</del>
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
      )}
      <footer class="form-foot">
        <span class="spacer" />
        <Button onPress={onBack}>Back to the file</Button>
        <Button kind="primary" refusal={refusal} isBusy={action.isBusy} onPress={() => void apply()}>
          Apply
        </Button>
      </footer>
    </div>
  );
}

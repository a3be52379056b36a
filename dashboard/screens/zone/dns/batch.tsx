import { useEffect, useState } from "preact/hooks";
import { AsCode } from "../../../code/as-code.tsx";
import { ApiFailure, get, perform, type Call } from "../../../core/client.ts";
import { count, plural } from "../../../core/format.ts";
import type { Rows } from "../../../core/pages.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import type { Selection } from "../../../parts/grid.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { toast } from "../../../parts/toast.tsx";
import type { DnsRecord } from "./record.ts";

/** The chosen records: some that are loaded, or all that match the filter. */
export interface RecordSelection extends Selection<DnsRecord> {
  chosen: ReadonlyMap<string, DnsRecord>;
  isAllMatching: boolean;
  size: number;
  isFiltered: boolean;
  clear: () => void;
}

export function useRecordSelection(rows: Rows<DnsRecord>, query: string): RecordSelection {
  const [chosen, setChosen] = useState<ReadonlyMap<string, DnsRecord>>(new Map());
  const [isAllMatching, setAllMatching] = useState(false);
  const clear = (): void => {
    setChosen(new Map());
    setAllMatching(false);
  };
  useEffect(clear, [query]);
  const size = isAllMatching ? (rows.count ?? 0) : chosen.size;
  return {
    chosen,
    isAllMatching,
    size,
    isFiltered: /(?:search|type|proxied)=/.test(query),
    clear,
    state: size === 0 ? "none" : isAllMatching || size === rows.count ? "all" : "some",
    has: ({ id }) => isAllMatching || chosen.has(id),
    toggle(record) {
      setAllMatching(false);
      const next = new Map(isAllMatching ? [] : chosen);
      if (!next.delete(record.id)) next.set(record.id, record);
      setChosen(next);
    },
    toggleAll() {
      setChosen(new Map());
      setAllMatching(size === 0);
    },
  };
}

/** Operations in a batch, by the limits of plans. */
const batchMaxOf = (plan: string | undefined): number => (plan === "free" ? 200 : 3500);
const pageMax = 5000;
type Change =
  | { title: string; patch: Partial<Pick<DnsRecord, "proxied" | "ttl">> }
  | { title: string; patch: "delete" };

const changes: readonly Change[] = [
  { title: "Set to proxied", patch: { proxied: true } },
  { title: "Set to DNS only", patch: { proxied: false } },
  { title: "Set TTL to auto", patch: { ttl: 1 } },
  { title: "Set TTL to 5 min", patch: { ttl: 300 } },
  { title: "Set TTL to 1 h", patch: { ttl: 3600 } },
  { title: "Delete", patch: "delete" },
];

interface BatchBarProps {
  selection: RecordSelection;
  query: string;
  refusal: string | undefined;
  onDone: () => void;
}

/** The actions for the chosen records. */
export function BatchBar({ selection, query, refusal, onDone }: BatchBarProps) {
  const [change, setChange] = useState<Change | undefined>(undefined);
  if (selection.size === 0) return null;
  return (
    <div class="batch-bar" role="region" aria-label="Selected records">
      <strong>
        {selection.isAllMatching
          ? `All ${count(selection.size)} that match`
          : plural(selection.size, "record")}
      </strong>
      <Menu
        label="Change"
        align="start"
        items={changes.map((each) => ({
          label: each.title,
          refusal,
          onSelect: () => setChange(each),
          ...(each.patch === "delete" && { kind: "bad" as const }),
        }))}
      >
        <span>Change …</span>
      </Menu>
      <Button kind="quiet" onPress={selection.clear}>
        Clear
      </Button>
      {change !== undefined && (
        <BatchDialog
          change={change}
          selection={selection}
          query={query}
          onDone={onDone}
          onClose={() => setChange(undefined)}
        />
      )}
    </div>
  );
}

const batchCall = (zoneId: string, records: readonly DnsRecord[], { patch }: Change): Call => ({
  op: "POST /zones/{zone_id}/dns_records/batch",
  params: { zone_id: zoneId },
  body:
    patch === "delete"
      ? { deletes: records.map(({ id }) => ({ id })) }
      : { patches: records.map(({ id }) => ({ id, ...patch })) },
});

/** The calls that undo the change. Deleted records come back with new ids. */
const undoCall = (zoneId: string, records: readonly DnsRecord[], { patch }: Change): Call => ({
  op: "POST /zones/{zone_id}/dns_records/batch",
  params: { zone_id: zoneId },
  body:
    patch === "delete"
      ? {
          posts: records.map(
            ({ type, name, content, data, priority, proxied, proxiable, ttl, comment, tags }) => ({
              type,
              name,
              ...(data === undefined ? { content } : { data }),
              ...(priority !== undefined && { priority }),
              ...(proxiable && { proxied }),
              ttl,
              comment,
              tags,
            }),
          ),
        }
      : {
          patches: records.map(({ id, proxied, ttl }) => ({
            id,
            ...("proxied" in patch ? { proxied } : { ttl }),
          })),
        },
});

const parts = <T,>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));

function BatchDialog({
  change,
  selection,
  query,
  onDone,
  onClose,
}: {
  change: Change;
  selection: RecordSelection;
  query: string;
  onDone: () => void;
  onClose: () => void;
}) {
  const zone = useZone();
  const [doneCount, setDoneCount] = useState<number | undefined>(undefined);
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const isProxying = change.patch !== "delete" && "proxied" in change.patch;
  const run = async (): Promise<void> => {
    setFailure(undefined);
    setDoneCount(0);
    try {
      const all = selection.isAllMatching ? await readAll(zone.id, query) : [...selection.chosen.values()];
      const records = isProxying ? all.filter(({ proxiable }) => proxiable) : all;
      for (const part of parts(records, batchMaxOf(zone.plan.legacy_id))) {
        await perform(batchCall(zone.id, part, change));
        setDoneCount((before) => (before ?? 0) + part.length);
      }
      selection.clear();
      onClose();
      onDone();
      const undo = async (): Promise<void> => {
        for (const part of parts(records, batchMaxOf(zone.plan.legacy_id)))
          await perform(undoCall(zone.id, part, change));
        onDone();
      };
      toast(`${change.title}: ${plural(records.length, "record")}`, "ok", {
        label: "Undo",
        run: () => void undo().catch((error: Error) => toast(error.message, "bad")),
      });
    } catch (error) {
      setFailure(error instanceof ApiFailure ? error.message : String(error));
      onDone();
    }
  };
  const isRunning = doneCount !== undefined && failure === undefined;
  return (
    <Dialog title={change.title} onClose={onClose}>
      <p>
        {plural(selection.size, "record")} of {zone.name}
        {isProxying ? ". Types that cannot be proxied stay as they are." : "."}
      </p>
      {isRunning && (
        <progress max={selection.size} value={doneCount} aria-label="Progress">
          {doneCount}
        </progress>
      )}
      {failure !== undefined && (
        <p class="form-failure" role="alert">
          {failure}. {plural(doneCount ?? 0, "record")} changed before.
        </p>
      )}
      <footer class="form-foot">
        {!selection.isAllMatching && (
          <AsCode
            call={batchCall(
              zone.id,
              [...selection.chosen.values()].slice(0, batchMaxOf(zone.plan.legacy_id)),
              change,
            )}
          />
        )}
        <span class="spacer" />
        <Button onPress={onClose}>Cancel</Button>
        <Button
          kind={change.patch === "delete" ? "bad" : "primary"}
          isBusy={isRunning}
          onPress={() => void run()}
        >
          {isRunning ? `${count(doneCount)} of ${count(selection.size)}` : change.title}
        </Button>
      </footer>
    </Dialog>
  );
}

/** All records that match the filter. */
async function readAll(zoneId: string, query: string): Promise<DnsRecord[]> {
  const found: DnsRecord[] = [];
  for (let page = 1; ; page++) {
    const { result, info } = await get<DnsRecord[]>(
      `/zones/${zoneId}/dns_records?${query}&page=${page}&per_page=${pageMax}`,
    );
    found.push(...result);
    if (result.length === 0 || found.length >= (info.total_count ?? 0)) return found;
  }
}

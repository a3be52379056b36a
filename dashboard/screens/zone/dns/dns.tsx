import { useState } from "preact/hooks";
import { invalidate, useGet } from "../../../core/cache.ts";
import { send } from "../../../core/client.ts";
import { download } from "../../../core/download.ts";
import { count } from "../../../core/format.ts";
import { useShortcuts } from "../../../core/keys.ts";
import { useRows } from "../../../core/pages.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useSearch } from "../../../core/router.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Choice, Filter } from "../../../parts/filter.tsx";
import { Grid, type Column } from "../../../parts/grid.tsx";
import { Page, State } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { toast } from "../../../parts/toast.tsx";
import { AskDialog } from "./ask.tsx";
import { BatchBar, useRecordSelection } from "./batch.tsx";
import { ImportDialog } from "./import.tsx";
import { RecordPanel } from "./record-form.tsx";
import { recordTypes, shortName, ttlText, type DnsRecord } from "./record.ts";

const columnsOf = (zone: string): Column<DnsRecord>[] => [
  { key: "type", title: "Type", width: "84px", cell: ({ type }) => <span class="badge mono">{type}</span> },
  {
    key: "name",
    title: "Name",
    width: "minmax(140px, 1.2fr)",
    cell: ({ name }) => <strong class="record-name">{shortName(name, zone)}</strong>,
  },
  {
    key: "content",
    title: "Value",
    width: "minmax(160px, 2fr)",
    isBelow: true,
    cell: ({ content, priority }) => (
      <span class="mono" title={content}>
        {priority === undefined ? "" : `${priority} `}
        {content}
      </span>
    ),
  },
  {
    key: "proxied",
    title: "Traffic",
    width: "112px",
    cell: ({ proxied, proxiable }) =>
      !proxiable ? (
        <span class="faint">–</span>
      ) : proxied ? (
        <State tone="proxied">proxied</State>
      ) : (
        <State tone="off">DNS only</State>
      ),
  },
  { key: "ttl", title: "TTL", width: "72px", cell: ({ ttl }) => ttlText(ttl), isExtra: true },
  {
    key: "comment",
    title: "Comment",
    width: "minmax(80px, 1fr)",
    cell: ({ comment, tags }) => <span class="faint">{[comment, ...tags].filter(Boolean).join(" · ")}</span>,
    isExtra: true,
  },
];

/** The address of the records, with the filters of the address bar. */
function useRecordsPath(zoneId: string): { path: string; query: string } {
  const [search] = useSearch("search");
  const [type] = useSearch("type");
  const [proxied] = useSearch("proxied");
  const query = new URLSearchParams({
    order: "name",
    ...(search !== "" && { search }),
    ...(type !== "" && { type }),
    ...(proxied !== "" && { proxied }),
  });
  return { path: `/zones/${zoneId}/dns_records?${query}`, query: query.toString() };
}

/** The records of the zone: find, edit, change many at once, import, and export. */
export default function Dns() {
  const zone = useZone();
  const { path, query } = useRecordsPath(zone.id);
  const rows = useRows<DnsRecord>(path, 200);
  const usage = useGet<{ record_quota: number | null; record_usage: number }>(
    `/zones/${zone.id}/dns_records/usage`,
  );
  const [openId, setOpenId] = useSearch("record");
  const [isImporting, setImporting] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const selection = useRecordSelection(rows, query);
  const refusal = useRefusal();
  const edit = refusal("POST /zones/{zone_id}/dns_records");
  useShortcuts([
    { keys: "n", label: "Add a record", run: () => edit === undefined && setOpenId("new", false) },
    { keys: "q", label: "Ask the name server", run: () => setAsking(true) },
    { keys: "i", label: "Import a zone file", run: () => edit === undefined && setImporting(true) },
  ]);
  const refresh = (): void => {
    rows.first.reload();
    invalidate(`/zones/${zone.id}/dns_records/usage`);
  };
  const add = (
    <Button icon="plus" kind="primary" refusal={edit} onPress={() => setOpenId("new", false)}>
      Add a record
    </Button>
  );
  const quota = usage.data?.record_quota;
  const about =
    rows.count === undefined
      ? undefined
      : `${count(rows.count)} ${query.includes("&") || selection.isFiltered ? "match" : "records"}${quota == null ? "" : `, ${count(usage.data!.record_usage)} of ${count(quota)} used`}`;
  return (
    <Page
      title="DNS records"
      about={about}
      actions={
        <>
          <Menu
            label="More"
            items={[
              { label: "Ask the name server", icon: "search", onSelect: () => setAsking(true) },
              {
                label: "Import a zone file",
                icon: "upload",
                refusal: edit,
                onSelect: () => setImporting(true),
              },
              { label: "Export as a zone file", icon: "download", onSelect: () => void exportZone(zone) },
            ]}
          />
          {add}
        </>
      }
    >
      <Filters />
      <Loaded
        of={rows.first}
        rows={8}
        empty={
          selection.isFiltered ? (
            <Empty icon="search" title="No record matches this filter" />
          ) : (
            <Empty
              icon="zones"
              title="No record yet"
              actions={
                <>
                  {add}
                  <Button icon="upload" refusal={edit} onPress={() => setImporting(true)}>
                    Import a zone file
                  </Button>
                </>
              }
            >
              <p>A zone file of another server brings all of its records.</p>
            </Empty>
          )
        }
      >
        {() => (
          <>
            <BatchBar selection={selection} query={query} refusal={edit} onDone={refresh} />
            <Grid
              label="DNS records"
              columns={columnsOf(zone.name)}
              rows={rows}
              keyOf={({ id }) => id}
              openKey={openId}
              selection={selection}
              onOpen={({ id }) => setOpenId(id, false)}
            />
          </>
        )}
      </Loaded>
      {openId !== "" && (
        <OpenRecord
          key={openId}
          id={openId}
          onDone={() => {
            setOpenId("");
            refresh();
          }}
          onClose={() => setOpenId("")}
        />
      )}
      {isAsking && <AskDialog onClose={() => setAsking(false)} />}
      {isImporting && <ImportDialog onDone={refresh} onClose={() => setImporting(false)} />}
    </Page>
  );
}

function Filters() {
  const [search, setSearch] = useSearch("search");
  const [type, setType] = useSearch("type");
  const [proxied, setProxied] = useSearch("proxied");
  return (
    <div class="toolbar">
      <Filter label="Filter records by name, value or comment" value={search} onChange={setSearch} />
      <Choice
        label="Type"
        value={type}
        onChange={setType}
        options={[{ value: "", label: "All types" }, ...recordTypes]}
      />
      <Choice
        label="Traffic"
        value={proxied}
        onChange={setProxied}
        options={[
          { value: "", label: "Proxied and DNS only" },
          { value: "true", label: "Proxied" },
          { value: "false", label: "DNS only" },
        ]}
      />
    </div>
  );
}

function OpenRecord({ id, onDone, onClose }: { id: string; onDone: () => void; onClose: () => void }) {
  const zone = useZone();
  const record = useGet<DnsRecord>(id === "new" ? undefined : `/zones/${zone.id}/dns_records/${id}`);
  if (id !== "new" && record.data === undefined) return null;
  return <RecordPanel record={id === "new" ? undefined : record.data} onDone={onDone} onClose={onClose} />;
}

async function exportZone(zone: { id: string; name: string }): Promise<void> {
  const response = await send(`/zones/${zone.id}/dns_records/export`);
  if (!response.ok) return toast("The zone could not be exported", "bad");
  download(await response.blob(), `${zone.name}.zone`);
}

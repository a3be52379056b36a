import { useGet } from "../../core/cache.ts";
import { bytes } from "../../core/format.ts";
import { useRows } from "../../core/pages.ts";
import { useSearch } from "../../core/router.ts";
import { Filter } from "../../parts/filter.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Card, Facts } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import type { ScriptPlace } from "./script.ts";

interface AssetFile {
  path: string;
  hash: string;
  size: number;
  content_type: string | null;
}
interface AssetRules {
  html_handling: string;
  not_found_handling: string;
  base_path: string;
  run_worker_first: boolean | string[];
  headers: { path: string; set: { name: string; value: string }[]; unset: string[] }[];
  redirects: { from: string; to: string; status: number; line: number }[];
}

const columns: Column<AssetFile>[] = [
  { key: "name", title: "Path", width: "minmax(160px, 3fr)", cell: ({ path }) => <code>{path}</code> },
  {
    key: "type",
    title: "Type",
    width: "minmax(100px, 1fr)",
    isExtra: true,
    cell: ({ content_type }) => content_type ?? "–",
  },
  { key: "size", title: "Size", width: "96px", isNumber: true, cell: ({ size }) => bytes(size) },
  {
    key: "hash",
    title: "Hash",
    width: "minmax(100px, 1fr)",
    isExtra: true,
    cell: ({ hash }) => <code>{hash}</code>,
  },
];

/** The static files of a script, and how they are served. */
export function AssetsTab({ place }: { place: ScriptPlace }) {
  const [search, setSearch] = useSearch("search");
  const path = `${place.path}/edge/assets`;
  const query = search === "" ? "" : `?search=${encodeURIComponent(search)}`;
  const files = useRows<AssetFile>(`${path}${query}`);
  const rules = useGet<AssetRules>(`${path}/rules`);
  if (files.first.failure?.status === 404)
    return (
      <Empty icon="scripts" title="The script has no static assets">
        <p>
          With <code>assets.directory</code> in its configuration, <code>wrangler deploy</code> uploads a
          folder.
        </p>
      </Empty>
    );
  return (
    <div class="stack">
      <div class="toolbar close">
        <Filter label="Filter files by path" value={search} onChange={setSearch} />
      </div>
      <Loaded of={files.first} empty={<Empty icon="search" title="No file has this path" />}>
        {() => <Grid label="Files" columns={columns} rows={files} keyOf={(file) => file.path} />}
      </Loaded>
      <Loaded of={rules}>{(data) => <Rules rules={data} />}</Loaded>
    </div>
  );
}

const Rules = ({ rules }: { rules: AssetRules }) => (
  <>
    <Card title="Serving">
      <Facts
        facts={[
          ["HTML", rules.html_handling],
          ["Not found", rules.not_found_handling],
          ["Begins at", rules.base_path],
          [
            "Script first",
            Array.isArray(rules.run_worker_first)
              ? rules.run_worker_first.join(", ")
              : rules.run_worker_first
                ? "for each request"
                : "only if no file has the path",
          ],
        ]}
      />
    </Card>
    <Card title="Headers">
      {rules.headers.length === 0 ? (
        <p class="faint">There is no _headers file, or it has no rule.</p>
      ) : (
        <Table
          label="Headers"
          rows={rules.headers}
          keyOf={(rule) => `${rule.path} ${JSON.stringify(rule.set)}`}
          columns={[
            { title: "Path", cell: (rule) => <code>{rule.path}</code> },
            {
              title: "Headers",
              isWide: true,
              cell: ({ set, unset }) =>
                [
                  ...set.map(({ name, value }) => `${name}: ${value}`),
                  ...unset.map((name) => `without ${name}`),
                ].join(" · "),
            },
          ]}
        />
      )}
    </Card>
    <Card title="Redirects">
      {rules.redirects.length === 0 ? (
        <p class="faint">There is no _redirects file, or it has no rule.</p>
      ) : (
        <Table
          label="Redirects"
          rows={rules.redirects}
          keyOf={({ line }) => String(line)}
          columns={[
            { title: "From", cell: ({ from }) => <code>{from}</code> },
            { title: "To", isWide: true, cell: ({ to }) => <code>{to}</code> },
            { title: "Status", isNumber: true, cell: ({ status }) => status },
          ]}
        />
      )}
    </Card>
  </>
);

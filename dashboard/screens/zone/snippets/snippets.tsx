import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import { useShortcuts } from "../../../core/keys.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useSearch } from "../../../core/router.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Page, Time } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";
import { RulesCard } from "./rules-card.tsx";
import { SnippetPanel } from "./snippet-panel.tsx";
import type { SnippetRule } from "./snippet-rule.ts";

interface Snippet {
  snippet_name: string;
  created_on: string;
  modified_on: string;
}

/** The zone's snippets, and the rules that choose the requests they handle. */
export default function Snippets() {
  const zone = useZone();
  const base = `/zones/${zone.id}/snippets`;
  const snippets = useGet<Snippet[]>(`${base}?per_page=50`);
  const rules = useGet<SnippetRule[]>(`${base}/snippet_rules`);
  const [openName, setOpenName] = useSearch("snippet");
  const [deleted, setDeleted] = useState<string | undefined>(undefined);
  const edit = useRefusal()("PUT /zones/{zone_id}/snippets/{snippet_name}");
  useShortcuts([{ keys: "n", label: "Write a snippet", run: () => edit === undefined && setOpenName("+") }]);
  const names = snippets.data?.map(({ snippet_name }) => snippet_name) ?? [];
  const list = rules.data ?? [];
  const add = (
    <Button icon="plus" kind="primary" refusal={edit} onPress={() => setOpenName("+")}>
      Write a snippet
    </Button>
  );
  return (
    <Page
      title="Snippets"
      about="Small scripts of the zone. They run in the order of their rules, before scripts and the origin."
      actions={add}
    >
      <div class="stack">
        <Loaded
          of={snippets}
          empty={
            <Empty icon="scripts" title="No snippet yet" actions={add}>
              <p>A snippet changes requests and answers: headers, redirects, cookies.</p>
            </Empty>
          }
        >
          {(all) => (
            <Table
              label="Snippets"
              rows={all}
              keyOf={({ snippet_name }) => snippet_name}
              columns={[
                {
                  title: "Name",
                  isWide: true,
                  cell: ({ snippet_name }) => (
                    <button type="button" class="link mono" onClick={() => setOpenName(snippet_name)}>
                      {snippet_name}
                    </button>
                  ),
                },
                {
                  title: "Rules",
                  isNumber: true,
                  cell: ({ snippet_name }) =>
                    list.filter((each) => each.snippet_name === snippet_name).length,
                },
                { title: "Changed", isExtra: true, cell: ({ modified_on }) => <Time at={modified_on} /> },
              ]}
              actions={({ snippet_name }) => {
                const isUsed = list.some((each) => each.snippet_name === snippet_name);
                return (
                  <Menu
                    label={`Actions of ${snippet_name}`}
                    items={[
                      { label: "Edit", icon: "edit", onSelect: () => setOpenName(snippet_name) },
                      {
                        label: "Delete",
                        icon: "trash",
                        kind: "bad",
                        refusal: edit ?? (isUsed ? "a rule uses it" : undefined),
                        onSelect: () => setDeleted(snippet_name),
                      },
                    ]}
                  />
                );
              }}
            />
          )}
        </Loaded>
        {names.length > 0 && <RulesCard rules={rules} names={names} path={base} />}
      </div>
      {openName !== "" && (
        <SnippetPanel
          key={openName}
          name={openName === "+" ? undefined : openName}
          names={names}
          onClose={() => setOpenName("")}
        />
      )}
      {deleted !== undefined && (
        <Confirm
          title={`Delete ${deleted}`}
          submit="Delete"
          call={{
            op: "DELETE /zones/{zone_id}/snippets/{snippet_name}",
            params: { zone_id: zone.id, snippet_name: deleted },
          }}
          done={`${deleted} was deleted`}
          invalidates={[base]}
          onClose={() => setDeleted(undefined)}
        />
      )}
    </Page>
  );
}

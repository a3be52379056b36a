import { useState } from "preact/hooks";
import { useGet } from "../../../core/cache.ts";
import type { Call } from "../../../core/client.ts";
import { useShortcuts } from "../../../core/keys.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useSearch } from "../../../core/router.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, SelectField, Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Card, Page, State, Time } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";
import { SnippetPanel } from "./snippet-panel.tsx";

interface Snippet {
  snippet_name: string;
  created_on: string;
  modified_on: string;
}
interface SnippetRule {
  id?: string;
  description: string;
  enabled: boolean;
  expression: string;
  snippet_name: string;
}

/** The zone's snippets, and the rules that choose the requests they handle. */
export default function Snippets() {
  const zone = useZone();
  const base = `/zones/${zone.id}/snippets`;
  const snippets = useGet<Snippet[]>(`${base}?per_page=50`);
  const rules = useGet<SnippetRule[]>(`${base}/snippet_rules`);
  const [openName, setOpenName] = useSearch("snippet");
  const [deleted, setDeleted] = useState<string | undefined>(undefined);
  const [rule, setRule] = useState<number | undefined>(undefined);
  const refusal = useRefusal();
  const edit = refusal("PUT /zones/{zone_id}/snippets/{snippet_name}");
  useShortcuts([{ keys: "n", label: "Write a snippet", run: () => edit === undefined && setOpenName("+") }]);
  const names = snippets.data?.map(({ snippet_name }) => snippet_name) ?? [];
  const list = rules.data ?? [];
  const ruleCall = (next: readonly SnippetRule[]) => ({
    op: "PUT /zones/{zone_id}/snippets/snippet_rules",
    params: { zone_id: zone.id },
    body: {
      rules: next.map(({ id, description, enabled, expression, snippet_name }) => ({
        ...(id && { id }),
        description,
        enabled,
        expression,
        snippet_name,
      })),
    },
  });
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
        {names.length > 0 && (
          <Card
            title="Rules"
            actions={
              <Button icon="plus" refusal={edit} onPress={() => setRule(-1)}>
                Add a rule
              </Button>
            }
          >
            <Loaded of={rules} rows={2} empty={<p class="faint">No rule: no snippet runs.</p>}>
              {(all) => (
                <Table
                  label="Snippet rules"
                  rows={all}
                  keyOf={({ id, expression }) => id ?? expression}
                  columns={[
                    { title: "When", isWide: true, cell: ({ expression }) => <code>{expression}</code> },
                    { title: "Snippet", cell: ({ snippet_name }) => <code>{snippet_name}</code> },
                    {
                      title: "State",
                      cell: ({ enabled }) => (
                        <State tone={enabled ? "ok" : "off"}>{enabled ? "on" : "off"}</State>
                      ),
                    },
                  ]}
                  actions={(each) => (
                    <Button
                      icon="edit"
                      kind="quiet"
                      label="Edit the rule"
                      refusal={edit}
                      onPress={() => setRule(all.indexOf(each))}
                    />
                  )}
                />
              )}
            </Loaded>
          </Card>
        )}
      </div>
      {openName !== "" && (
        <SnippetPanel
          key={openName}
          name={openName === "+" ? undefined : openName}
          onClose={() => setOpenName("")}
        />
      )}
      {rule !== undefined && (
        <RuleDialog
          rule={list[rule]}
          names={names}
          callOf={(next) =>
            ruleCall(
              next === undefined
                ? list.toSpliced(rule, 1)
                : rule < 0
                  ? [...list, next]
                  : list.with(rule, next),
            )
          }
          path={base}
          onClose={() => setRule(undefined)}
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

interface RuleDialogProps {
  rule: SnippetRule | undefined;
  names: readonly string[];
  /** The call that saves the rules with this rule; `undefined` removes it. */
  callOf: (rule: SnippetRule | undefined) => Call;
  path: string;
  onClose: () => void;
}

function RuleDialog({ rule, names, callOf, path, onClose }: RuleDialogProps) {
  const { values, set } = useForm<SnippetRule>(
    rule ?? { description: "", enabled: true, expression: "true", snippet_name: names[0] ?? "" },
  );
  const [isDeleting, setDeleting] = useState(false);
  if (isDeleting)
    return (
      <Confirm
        title="Delete the rule"
        submit="Delete"
        call={callOf(undefined)}
        done="The rule was deleted"
        invalidates={[path]}
        onDone={onClose}
        onClose={() => setDeleting(false)}
      />
    );
  return (
    <Dialog title={rule === undefined ? "Add a rule" : "Edit the rule"} kind="side" onClose={onClose}>
      <ActionForm
        call={callOf(values)}
        submit="Save"
        done="The rule was saved"
        invalidates={[path]}
        onCancel={onClose}
        onDone={onClose}
      >
        {(failure) => (
          <>
            <SelectField
              label="Snippet"
              value={values.snippet_name}
              onChange={(name) => set("snippet_name", name)}
              options={names}
            />
            <TextField
              label="When requests match"
              value={values.expression}
              onChange={(value) => set("expression", value)}
              rows={4}
              isMono
              error={failure?.errors.find(({ source }) => source?.pointer.endsWith("/expression"))?.message}
            />
            <TextField
              label="Description"
              value={values.description}
              onChange={(value) => set("description", value)}
            />
            <Switch label="On" isOn={values.enabled} onChange={(on) => set("enabled", on)} />
          </>
        )}
      </ActionForm>
      {rule !== undefined && (
        <div class="row">
          <Button icon="trash" kind="bad" onPress={() => setDeleting(true)}>
            Delete
          </Button>
        </div>
      )}
    </Dialog>
  );
}

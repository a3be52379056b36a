import { useAction } from "../../../core/action.ts";
import type { Query } from "../../../core/cache.ts";
import { useOpened } from "../../../core/opened.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { useSearch } from "../../../core/router.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Card, State } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { Loaded } from "../../../parts/states.tsx";
import { Table } from "../../../parts/table.tsx";
import { RuleDialog } from "./rule-dialog.tsx";
import type { SnippetRule } from "./snippet-rule.ts";

interface RulesCardProps {
  rules: Query<SnippetRule[]>;
  /** The snippets of the zone. */
  names: readonly string[];
  /** The path below which everything is read again after a change. */
  path: string;
}

/** The rules of the zone's snippets, in their order. They are saved as a whole. */
export function RulesCard({ rules, names, path }: RulesCardProps) {
  const zone = useZone();
  const [ruleId, setRuleId] = useSearch("rule");
  const move = useAction({ done: "The order was changed", invalidates: [path], tellsFailure: true });
  const edit = useRefusal()("PUT /zones/{zone_id}/snippets/{snippet_name}");
  const list = rules.data ?? [];
  const rule = ruleId === "new" ? -1 : list.findIndex(({ id }) => id === ruleId);
  const { opened, isDeleted } = useOpened(ruleId, list[rule]);
  const moved = (from: number, to: number): void =>
    void move.run(ruleCall(list.toSpliced(from, 1).toSpliced(to, 0, list[from]!)));
  const ruleCall = (next: readonly SnippetRule[]) => ({
    op: "PUT /zones/{zone_id}/snippets/snippet_rules",
    params: { zone_id: zone.id },
    ...(rules.etag !== undefined && { headers: { "if-match": rules.etag } }),
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
  return (
    <>
      <Card
        title="Rules"
        actions={
          <Button icon="plus" refusal={edit} onPress={() => setRuleId("new", false)}>
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
                { title: "Place", isNumber: true, cell: (each) => all.indexOf(each) + 1 },
                {
                  title: "When",
                  isWide: true,
                  cell: ({ description, expression }) => (
                    <>
                      {description !== "" && (
                        <>
                          {description}
                          <br />
                        </>
                      )}
                      <code>{expression}</code>
                    </>
                  ),
                },
                { title: "Snippet", cell: ({ snippet_name }) => <code>{snippet_name}</code> },
                {
                  title: "State",
                  cell: ({ enabled }) => (
                    <State tone={enabled ? "ok" : "off"}>{enabled ? "on" : "off"}</State>
                  ),
                },
              ]}
              actions={(each) => {
                const at = all.indexOf(each);
                return (
                  <Menu
                    label={`Actions of rule ${at + 1}`}
                    items={[
                      {
                        label: "Edit the rule",
                        icon: "edit",
                        refusal: edit,
                        onSelect: () => setRuleId(each.id ?? "", false),
                      },
                      {
                        label: "Move up",
                        icon: "up",
                        refusal: edit ?? (at === 0 ? "is the first" : undefined),
                        onSelect: () => moved(at, at - 1),
                      },
                      {
                        label: "Move down",
                        icon: "down",
                        refusal: edit ?? (at === all.length - 1 ? "is the last" : undefined),
                        onSelect: () => moved(at, at + 1),
                      },
                    ]}
                  />
                );
              }}
            />
          )}
        </Loaded>
      </Card>
      {(ruleId === "new" || opened !== undefined) && (
        <RuleDialog
          key={ruleId}
          rule={opened}
          isDeleted={isDeleted}
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
          path={path}
          onClose={() => setRuleId("")}
        />
      )}
    </>
  );
}

import { useState } from "preact/hooks";
import { useAction } from "../../../core/action.ts";
import { get, onlyAt, type Call } from "../../../core/client.ts";
import { useShortcuts } from "../../../core/keys.ts";
import { useOpened } from "../../../core/opened.ts";
import { useRefusal } from "../../../core/permissions.ts";
import { href, useSearch } from "../../../core/router.ts";
import { useZone } from "../../../core/zone.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Page, State } from "../../../parts/layout.tsx";
import { Menu } from "../../../parts/menu.tsx";
import { Empty, Loaded } from "../../../parts/states.tsx";
import { toast } from "../../../parts/toast.tsx";
import { RuleDialog } from "./rule-dialog.tsx";
import { bodyOf, describe, entrypointOf, rulesetsOf, type Rule, type Ruleset } from "./rule.ts";
import { useRuleset } from "./use-ruleset.ts";

const phase = "http_request_origin";
const op = "PUT /zones/{zone_id}/rulesets/phases/{phase}/entrypoint";
/** One rule of the ruleset: another person may change other rules at the same time. */
const rulesOp = "/zones/{zone_id}/rulesets/{ruleset_id}/rules";
const editedEveryMs = 5000;

/** The origin rules of the zone, in their order. */
export default function Rules() {
  const zone = useZone();
  const path = entrypointOf(zone.id, phase);
  const [openId, setOpenId] = useSearch("rule");
  const ruleset = useRuleset(zone.id, phase, openId === "" ? {} : { everyMs: editedEveryMs });
  const [deleted, setDeleted] = useState<Rule | undefined>(undefined);
  const [dragged, setDragged] = useState<number | undefined>(undefined);
  const changed = [rulesetsOf(zone.id)];
  const action = useAction({ invalidates: changed, tellsFailure: true });
  const refusal = useRefusal()(op);
  useShortcuts([{ keys: "n", label: "Add a rule", run: () => refusal === undefined && setOpenId("new") }]);
  const isNone = ruleset.data === null;
  const rules = ruleset.data?.rules ?? [];
  // Unlike a replacement, it is refused if another person has made the ruleset meanwhile.
  const create = (rule: Rule): Call => ({
    op: "POST /zones/{zone_id}/rulesets",
    params: { zone_id: zone.id },
    body: { name: "default", kind: "zone", phase, rules: [bodyOf(rule)] },
  });
  const all = (next: readonly Rule[]): Call => ({
    op,
    params: { zone_id: zone.id, phase },
    body: { rules: next.map(bodyOf) },
  });
  const params = { zone_id: zone.id, ruleset_id: ruleset.data?.id ?? "" };
  const saved = (rule: Rule): Call =>
    rule.id !== ""
      ? onlyAt(`"${rule.version}"`, {
          op: `PATCH ${rulesOp}/{rule_id}`,
          params: { ...params, rule_id: rule.id },
          body: bodyOf(rule),
        })
      : isNone
        ? create(rule)
        : { op: `POST ${rulesOp}`, params, body: bodyOf(rule) };
  const move = async (from: number, to: number): Promise<void> => {
    if (to < 0 || to >= rules.length || from === to || refusal !== undefined) return;
    // The order is written as a whole, so it is read again first.
    const { result, etag } = await get<Ruleset>(path);
    const now = result.rules ?? [];
    const moved = now.find(({ id }) => id === rules[from]!.id);
    if (moved === undefined) return ruleset.reload();
    const next = now.filter((rule) => rule !== moved).toSpliced(to, 0, moved);
    const answer = await action.run(onlyAt(etag, all(next)));
    if (answer !== undefined) toast(`Rule ${from + 1} is now at place ${to + 1} of ${rules.length}`);
    document.querySelector<HTMLElement>(`[data-rule="${to}"]`)?.focus();
  };
  const add = (
    <Button icon="plus" kind="primary" refusal={refusal} onPress={() => setOpenId("new")}>
      Add a rule
    </Button>
  );
  const list = (
    <ol class="rules" aria-label="Origin rules, in their order">
      {rules.map((rule, index) => (
        <li
          key={rule.id}
          data-rule={index}
          tabIndex={0}
          draggable={refusal === undefined}
          class={`rule ${dragged === index ? "dragged" : ""} ${rule.enabled ? "" : "off"}`}
          onDragStart={() => setDragged(index)}
          onDragEnd={() => setDragged(undefined)}
          onDragOver={(event) => event.preventDefault()}
          onDrop={() => dragged !== undefined && void move(dragged, index)}
          onKeyDown={(event) => {
            if (event.target !== event.currentTarget) return;
            if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
              event.preventDefault();
              void move(index, event.key === "ArrowUp" ? index - 1 : index + 1);
            } else if (event.key === "Enter") setOpenId(rule.id);
          }}
        >
          <span class="rule-place">{index + 1}</span>
          <div class="rule-text">
            <div class="row">
              <button type="button" class="link" onClick={() => setOpenId(rule.id)}>
                {rule.description === "" ? "Rule without a name" : rule.description}
              </button>
              {!rule.enabled && <State tone="off">off</State>}
            </div>
            <code>{rule.expression}</code>
            <span class="rule-effect">→ {describe(rule)}</span>
          </div>
          <Menu
            label={`Actions of rule ${index + 1}`}
            items={[
              { label: "Edit", icon: "edit", refusal, onSelect: () => setOpenId(rule.id) },
              {
                label: "Move up",
                icon: "up",
                refusal: refusal ?? (index === 0 ? "is the first" : undefined),
                onSelect: () => void move(index, index - 1),
              },
              {
                label: "Move down",
                icon: "down",
                refusal: refusal ?? (index === rules.length - 1 ? "is the last" : undefined),
                onSelect: () => void move(index, index + 1),
              },
              {
                label: rule.enabled ? "Switch off" : "Switch on",
                icon: rule.enabled ? "pause" : "play",
                refusal,
                onSelect: () => void action.run(saved({ ...rule, enabled: !rule.enabled })),
              },
              { label: "Delete", icon: "trash", kind: "bad", refusal, onSelect: () => setDeleted(rule) },
            ]}
          />
        </li>
      ))}
    </ol>
  );
  const empty = (
    <Empty icon="route" title="No origin rule yet" actions={add}>
      <p>
        An origin rule sends matching requests to another host, port, or with another Host header. The first
        that matches sets each of them.
      </p>
    </Empty>
  );
  const { opened, isDeleted } = useOpened(
    openId,
    rules.find(({ id }) => id === openId),
  );
  return (
    <Page
      title="Origin rules"
      about={
        <>
          They choose the origin of a request. Redirects and headers are made by{" "}
          <a href={href(`/${zone.account.id}/zones/${zone.name}/snippets`)}>snippets and their rules</a>.
          Rules run from top to bottom: drag one, or Alt+↑ and Alt+↓ on it, to change the order.
        </>
      }
      actions={add}
    >
      <Loaded of={ruleset}>{() => (rules.length === 0 ? empty : list)}</Loaded>
      {(openId === "new" || opened !== undefined) && (
        <RuleDialog
          key={openId}
          rule={opened}
          isDeleted={isDeleted}
          callOf={saved}
          changed={changed}
          onClose={() => setOpenId("")}
        />
      )}
      {deleted !== undefined && (
        <Confirm
          title="Delete the rule"
          submit="Delete"
          call={onlyAt(`"${deleted.version}"`, {
            op: `DELETE ${rulesOp}/{rule_id}`,
            params: { ...params, rule_id: deleted.id },
          })}
          done="The rule was deleted"
          invalidates={changed}
          onClose={() => {
            setDeleted(undefined);
            ruleset.reload();
          }}
        >
          <code>{deleted.expression}</code>
        </Confirm>
      )}
    </Page>
  );
}

import { useState } from "preact/hooks";
import type { Call } from "../../../core/client.ts";
import { Button } from "../../../parts/button.tsx";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Notice } from "../../../parts/layout.tsx";
import { DeletedNotice } from "../deleted-notice.tsx";
import { ExpressionField } from "../expression-field.tsx";
import { describe, type Rule } from "./rule.ts";

interface RuleDialogProps {
  rule: Rule | undefined;
  /** Another person has deleted it since. */
  isDeleted: boolean;
  /** The call that saves the ruleset with this rule. */
  callOf: (rule: Rule) => Call;
  /** The paths that are read again when it is saved. */
  changed: readonly string[];
  onClose: () => void;
}

function valuesOf(rule: Rule | undefined) {
  const { origin, host_header: hostHeader, sni } = rule?.action_parameters ?? {};
  return {
    description: rule?.description ?? "",
    expression: rule?.expression ?? 'http.host eq "www.example.com"',
    enabled: rule?.enabled ?? true,
    host: origin?.host ?? "",
    port: origin?.port === undefined ? "" : String(origin.port),
    hostHeader: hostHeader ?? "",
    sni: sni?.value ?? "",
  };
}

/** One origin rule: when it acts, and what it sets. */
export function RuleDialog({ rule, isDeleted, callOf, changed, onClose }: RuleDialogProps) {
  const { values, set, replace } = useForm(valuesOf(rule));
  const [seen, setSeen] = useState(rule?.version);
  const [isAgain, setAgain] = useState(false);
  const { description, expression, enabled, host, port, hostHeader, sni } = values;
  const origin = { ...(host !== "" && { host }), ...(port !== "" && { port: Number(port) }) };
  const next: Rule = {
    id: isDeleted ? "" : (rule?.id ?? ""),
    ...(seen !== undefined && { version: seen }),
    ...(rule?.ref !== undefined && { ref: rule.ref }),
    action: "route",
    action_parameters: {
      ...(hostHeader !== "" && { host_header: hostHeader }),
      ...(Object.keys(origin).length > 0 && { origin }),
      ...(sni !== "" && { sni: { value: sni } }),
    },
    expression,
    description,
    enabled,
  };
  return (
    <FormDialog
      title={rule === undefined ? "Add an origin rule" : "Edit the origin rule"}
      size="side"
      call={callOf(next)}
      submit="Save"
      done="The rule was saved"
      refusal={isDeleted && !isAgain ? "was deleted meanwhile" : undefined}
      invalidates={changed}
      onClose={onClose}
    >
      {(failure) => (
        <>
          {isDeleted && !isAgain && <DeletedNotice onAddAgain={() => setAgain(true)} />}
          {rule !== undefined && rule.version !== seen && (
            <Notice
              tone="warn"
              actions={
                <>
                  <Button
                    onPress={() => {
                      setSeen(rule.version);
                      replace(valuesOf(rule));
                    }}
                  >
                    Take theirs
                  </Button>
                  <Button onPress={() => setSeen(rule.version)}>Keep mine</Button>
                </>
              }
            >
              This rule was changed meanwhile: <code>{rule.expression}</code> → {describe(rule)}
            </Notice>
          )}
          <TextField
            label="Name"
            value={description}
            onChange={(value) => set("description", value)}
            autofocus={rule === undefined}
          />
          <ExpressionField
            value={expression}
            onChange={(value) => set("expression", value)}
            failure={failure}
          />
          <h3>Then send them</h3>
          <div class="form-row">
            <TextField label="To the host" value={host} onChange={(value) => set("host", value)} isMono />
            <TextField label="Port" type="number" value={port} onChange={(value) => set("port", value)} />
          </div>
          <div class="form-row">
            <TextField
              label="With the Host header"
              value={hostHeader}
              onChange={(value) => set("hostHeader", value)}
              isMono
            />
            <TextField label="With the SNI" value={sni} onChange={(value) => set("sni", value)} isMono />
          </div>
          <Switch label="On" isOn={enabled} onChange={(on) => set("enabled", on)} />
        </>
      )}
    </FormDialog>
  );
}

import { useState } from "preact/hooks";
import type { ApiFailure, Call } from "../../../core/client.ts";
import { Button } from "../../../parts/button.tsx";
import { FormDialog } from "../../../parts/form-dialog.tsx";
import { Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Notice } from "../../../parts/layout.tsx";
import { describe, type Rule } from "./rule.ts";

interface RuleDialogProps {
  rule: Rule | undefined;
  /** The call that saves the ruleset with this rule. */
  callOf: (rule: Rule) => Call;
  path: string;
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
export function RuleDialog({ rule, callOf, path, onClose }: RuleDialogProps) {
  const { values, set, replace } = useForm(valuesOf(rule));
  const [seen, setSeen] = useState(rule?.version);
  const { description, expression, enabled, host, port, hostHeader, sni } = values;
  const origin = { ...(host !== "" && { host }), ...(port !== "" && { port: Number(port) }) };
  const next: Rule = {
    id: rule?.id ?? "",
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
      invalidates={[path]}
      onClose={onClose}
    >
      {(failure) => (
        <>
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
          <TextField
            label="When requests match"
            value={expression}
            onChange={(value) => set("expression", value)}
            rows={4}
            isMono
            error={reasonOf(expressionError(failure))}
          />
          <Caret message={expressionError(failure)} />
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

const expressionError = (failure: ApiFailure | undefined): string | undefined =>
  failure?.errors.find(
    ({ source, message }) =>
      source?.pointer.endsWith("/expression") === true || message.includes("Filter parsing error"),
  )?.message;

/** The reason of a message about an expression, which is after the carets. */
const reasonOf = (message: string | undefined): string | undefined =>
  message === undefined ? undefined : (/\^+ (.*)$/s.exec(message)?.[1] ?? message);

/** The line of the expression with carets below the fault, as the API's message has them. */
export function Caret({ message }: { message: string | undefined }) {
  const lines = /Filter parsing error \(\d+:\d+\):\n(.*\n *\^+)/.exec(message ?? "")?.[1];
  return lines === undefined ? null : (
    <pre class="caret" aria-hidden="true">
      {lines}
    </pre>
  );
}

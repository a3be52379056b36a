import { useState } from "preact/hooks";
import type { Call } from "../../../core/client.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { ActionForm, SelectField, Switch, TextField, useForm } from "../../../parts/form.tsx";
import { Notice } from "../../../parts/layout.tsx";
import { DeletedNotice } from "../deleted-notice.tsx";
import { ExpressionField } from "../expression-field.tsx";
import type { SnippetRule } from "./snippet-rule.ts";

interface RuleDialogProps {
  rule: SnippetRule | undefined;
  /** Another person has deleted it since. */
  isDeleted: boolean;
  names: readonly string[];
  /** The call that saves the rules with this rule; `undefined` removes it. */
  callOf: (rule: SnippetRule | undefined) => Call;
  path: string;
  onClose: () => void;
}

/** Adds, changes or deletes one rule. */
export function RuleDialog({ rule, isDeleted, names, callOf, path, onClose }: RuleDialogProps) {
  const { values, set, replace } = useForm<SnippetRule>(
    rule ?? { description: "", enabled: true, expression: "true", snippet_name: names[0] ?? "" },
  );
  const [seen, setSeen] = useState(rule);
  const [isAgain, setAgain] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  // All rules have one tag, which is known again as soon as they are read again, after a refused save too.
  const isChanged = rule !== undefined && seen !== undefined && textOf(rule) !== textOf(seen);
  const refusal = isChanged
    ? "take or keep the other change first"
    : isDeleted && !isAgain
      ? "was deleted meanwhile"
      : undefined;
  // A new rule has no id.
  const { id: _, ...added } = values;
  if (isDeleting && !isChanged && !isDeleted)
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
        call={callOf(isDeleted ? added : values)}
        submit="Save"
        done="The rule was saved"
        refusal={refusal}
        invalidates={[path]}
        onCancel={onClose}
        onDone={onClose}
      >
        {(failure) => (
          <>
            {isDeleted && !isAgain && <DeletedNotice onAddAgain={() => setAgain(true)} />}
            {isChanged && (
              <Notice
                tone="warn"
                actions={
                  <>
                    <Button
                      onPress={() => {
                        setSeen(rule);
                        replace(rule);
                      }}
                    >
                      Take theirs
                    </Button>
                    <Button onPress={() => setSeen(rule)}>Keep mine</Button>
                  </>
                }
              >
                This rule was changed meanwhile: <code>{rule.expression}</code> → {rule.snippet_name},{" "}
                {rule.enabled ? "on" : "off"} {rule.description}
              </Notice>
            )}
            <SelectField
              label="Snippet"
              value={values.snippet_name}
              onChange={(name) => set("snippet_name", name)}
              options={names}
            />
            <ExpressionField
              value={values.expression}
              onChange={(value) => set("expression", value)}
              failure={failure}
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
      {rule !== undefined && !isDeleted && (
        <div class="row">
          <Button icon="trash" kind="bad" refusal={refusal} onPress={() => setDeleting(true)}>
            Delete
          </Button>
        </div>
      )}
    </Dialog>
  );
}

/** The part of a rule that a person sees. */
const textOf = ({ description, enabled, expression, snippet_name }: SnippetRule): string =>
  JSON.stringify([description, enabled, expression, snippet_name]);

import type { ComponentChildren } from "preact";
import { useContext, useState } from "preact/hooks";
import { Code } from "../../code/as-code.tsx";
import { href } from "../../core/router.ts";
import { ZoneContext } from "../../core/zone.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Card, State } from "../../parts/layout.tsx";
import { PartsTree } from "./parts-tree.tsx";
import { testOf, type Asked } from "./request.ts";
import { effectOf, outcomes, recordsOf, titleOf, type Outcome, type Step } from "./step.ts";

const OutcomeState = ({ of: outcome }: { of: Outcome }) => (
  <State tone={outcomes[outcome].tone}>{outcomes[outcome].text}</State>
);

/** The outcome of a phase. A phase without rules or routes cannot fail to match. */
export const PhaseState = ({ of: step }: { of: Step }) =>
  step.trace?.length === 0 && step.outcome === "no_match" ? (
    <State tone="off">has none</State>
  ) : (
    <OutcomeState of={step.outcome} />
  );

/** A phase with its rules, routes or settings. */
export const Phase = ({ step, asked }: { step: Step; asked: Asked }) => (
  <Card title={titleOf(step)} actions={<PhaseState of={step} />}>
    {step.trace === undefined ? (
      <StepBody step={step} asked={asked} />
    ) : step.trace.length === 0 ? (
      <p class="faint">There are none.</p>
    ) : (
      <ol class="steps">
        {step.trace.map((each) => (
          <li key={each.step_name} class={`step ${each.outcome}`}>
            <header>
              <strong>{nameOf(each) || effectOf(each)}</strong>
              <OutcomeState of={each.outcome} />
            </header>
            <StepBody step={each} asked={asked}>
              {each.type === "rule" && <EditorLink phase={step.step_name} id={each.step_name} />}
              <TargetLink of={each} />
            </StepBody>
          </li>
        ))}
      </ol>
    )}
  </Card>
);

/** The name that a person has given to a step, or that of the setting; empty if it has none. */
const nameOf = ({ description, type, step_name, name }: Step): string =>
  description || (type === "setting" ? step_name : name) || "";

const screens: Record<string, string> = {
  http_request_origin: "rules",
  http_request_snippets: "snippets",
};

/** The way from a step to the snippet or script that it runs. */
function TargetLink({ of: { action_parameters: parameters = {} } }: { of: Step }) {
  const zone = useContext(ZoneContext);
  const { snippet_name: snippet, script } = parameters;
  if (zone === undefined) return null;
  const base = `/${zone.account.id}`;
  if (typeof script === "string")
    return <a href={href(`${base}/scripts/${encodeURIComponent(script)}`)}>Open the script</a>;
  if (typeof snippet === "string")
    return (
      <a href={href(`${base}/zones/${zone.name}/snippets?snippet=${encodeURIComponent(snippet)}`)}>
        Open the snippet
      </a>
    );
  return null;
}

/** The way from a rule to its form, on the screens of a zone. */
function EditorLink({ phase, id }: { phase: string; id: string }) {
  const zone = useContext(ZoneContext);
  const screen = screens[phase];
  return zone === undefined || screen === undefined ? null : (
    <a href={href(`/${zone.account.id}/zones/${zone.name}/${screen}?rule=${id}`)}>Edit this rule</a>
  );
}

/** The effect of a step, its reasons, and links to the things that it names. */
function StepBody({ step, asked, children }: { step: Step; asked: Asked; children?: ComponentChildren }) {
  const [isTest, setTest] = useState(false);
  const { expression, parts, description } = step;
  return (
    <>
      {step.trace === undefined && step.type !== "rule" && description && <p>{description}</p>}
      {step.type === "setting" || step.type === "record" ? (
        <p class="effect">
          <code>{[step.name, ...recordsOf(step)].join(" · ")}</code>
        </p>
      ) : (
        // Without a name, the effect is the title.
        (step.type !== "rule" || nameOf(step) !== "") && <p class="effect">{effectOf(step)}</p>
      )}
      {parts !== undefined && <PartsTree of={parts} />}
      {parts === undefined && expression !== undefined && <code>{expression}</code>}
      <span class="row step-ways">
        {children}
        {expression !== undefined && parts !== undefined && (
          <Button kind="quiet" icon="code" onPress={() => setTest(true)}>
            Create a test from this
          </Button>
        )}
      </span>
      {isTest && (
        <Dialog title="As a test" kind="wide" onClose={() => setTest(false)}>
          <Code text={testOf(expression!, asked)} label="Command" />
        </Dialog>
      )}
    </>
  );
}

import { useState } from "preact/hooks";
import { Code } from "../../code/as-code.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Card, State } from "../../parts/layout.tsx";
import { PartsTree } from "./parts-tree.tsx";
import { testOf, type Asked } from "./request.ts";
import { effectOf, outcomes, titleOf, type Outcome, type Step } from "./step.ts";

const OutcomeState = ({ of: outcome }: { of: Outcome }) => (
  <State tone={outcomes[outcome].tone}>{outcomes[outcome].text}</State>
);

/** A phase with its rules, routes or settings. */
export const Phase = ({ step, asked }: { step: Step; asked: Asked }) => (
  <Card title={titleOf(step)} actions={<OutcomeState of={step.outcome} />}>
    {step.trace === undefined ? (
      <StepBody step={step} asked={asked} />
    ) : step.trace.length === 0 ? (
      <p class="faint">There are none.</p>
    ) : (
      <ol class="steps">
        {step.trace.map((each) => (
          <li key={each.step_name} class={`step ${each.outcome}`}>
            <header>
              <strong>
                {each.description || (each.type === "setting" ? each.step_name : each.name) || effectOf(each)}
              </strong>
              <OutcomeState of={each.outcome} />
            </header>
            <StepBody step={each} asked={asked} />
          </li>
        ))}
      </ol>
    )}
  </Card>
);

function StepBody({ step, asked }: { step: Step; asked: Asked }) {
  const [isTest, setTest] = useState(false);
  const { expression, parts, description } = step;
  return (
    <>
      {step.trace === undefined && step.type !== "rule" && description && <p>{description}</p>}
      {step.type === "setting" || step.type === "record" ? (
        <code>{step.name}</code>
      ) : (
        <p class="effect">{effectOf(step)}</p>
      )}
      {parts !== undefined && <PartsTree of={parts} />}
      {parts === undefined && expression !== undefined && <code>{expression}</code>}
      {expression !== undefined && parts !== undefined && (
        <Button kind="quiet" icon="code" onPress={() => setTest(true)}>
          Make a test of this
        </Button>
      )}
      {isTest && (
        <Dialog title="As a test" kind="wide" onClose={() => setTest(false)}>
          <Code text={testOf(expression!, asked)} label="Command" />
        </Dialog>
      )}
    </>
  );
}

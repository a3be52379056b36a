import { useRef } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { useAsync } from "../../core/async.ts";
import { perform, type ApiFailure, type Call } from "../../core/client.ts";
import { useSettled } from "../../core/settled.ts";
import { methods } from "../../core/typed-request.ts";
import { SelectField, TextField } from "../../parts/form.tsx";
import { Card, Folded, Page } from "../../parts/layout.tsx";
import { Empty, Failure } from "../../parts/states.tsx";
import { callOf, useAsked, type Asked } from "./request.ts";
import { titleOf, type Trace } from "./step.ts";
import { Phase, PhaseState } from "./steps.tsx";

/** A request, and the effects of its zone's configuration on it. Every edit traces it again. */
export function TraceScreen({ account, url }: { account: string; url: string }) {
  const [asked, change] = useAsked(url);
  const call = callOf(account, asked);
  const key = useSettled(JSON.stringify(call.body));
  const traced = useAsync<Trace>(key === "" || asked.url === "" ? undefined : key, async (signal) =>
    perform<Trace>({ ...call, body: JSON.parse(key) as object }, signal).then(({ result }) => result),
  );
  const latest = useRef<Trace | undefined>(undefined);
  if (traced.data !== undefined) latest.current = traced.data;
  const { failure } = traced;
  const steps = latest.current?.trace;
  return (
    <Page title="Trace" about="Which settings, rules and routes act on a request, and why. Nothing is sent.">
      <div class="trace">
        <RequestForm asked={asked} change={change} failure={failure} call={call} />
        <div class="stack" aria-busy={traced.isLoading}>
          {failure !== undefined && !isAtField(failure) && (
            <Failure failure={failure} onRetry={traced.reload} />
          )}
          {steps === undefined ? (
            failure === undefined && <Empty icon="route" title="Type a URL of a zone in this account" />
          ) : (
            <>
              <Path trace={latest.current!} />
              {steps.map((step) => (
                <Phase key={step.step_name} step={step} asked={asked} />
              ))}
            </>
          )}
        </div>
      </div>
    </Page>
  );
}

/** All phases in one line, in the order in which they run. */
const Path = ({ trace }: { trace: Trace }) => (
  <ol class="trace-path" aria-label="Phases">
    {trace.trace.map((step) => (
      <li key={step.step_name}>
        <span>{titleOf(step)}</span>
        <PhaseState of={step} />
      </li>
    ))}
  </ol>
);

const fieldOf: Record<string, string> = {
  url: "url",
  headers: "headers",
  body: "body",
  ip: "context/client_ip",
  country: "context/geoloc",
  score: "context/bot_score",
  expression: "expression",
};
const messageOf = (failure: ApiFailure | undefined, name: string): string | undefined =>
  failure?.errors.find(({ source }) => source?.pointer.startsWith(`/body/${fieldOf[name]}`) === true)
    ?.message;
const isAtField = (failure: ApiFailure): boolean =>
  Object.keys(fieldOf).some((name) => messageOf(failure, name) !== undefined);

interface RequestFormProps {
  asked: Asked;
  change: (name: keyof Asked) => (value: string) => void;
  failure: ApiFailure | undefined;
  call: Call;
}

function RequestForm({ asked, change, failure, call }: RequestFormProps) {
  const field = (name: keyof Asked) => ({
    value: asked[name],
    onChange: change(name),
    error: messageOf(failure, name),
  });
  return (
    <Card title="Request" class="trace-request" actions={<AsCode call={call} />}>
      <form class="form" onSubmit={(event) => event.preventDefault()}>
        <TextField label="URL" {...field("url")} isMono autofocus />
        <SelectField
          label="Method"
          value={asked.method}
          options={methods}
          onChange={change("method")}
          isNarrow
        />
        <Folded title="Headers, visitor, expression">
          <TextField
            label="Headers"
            {...field("headers")}
            rows={4}
            isMono
            placeholder="accept-language: de"
          />
          <TextField label="Body" {...field("body")} rows={2} isMono />
          <TextField label="Address of the visitor" {...field("ip")} placeholder="192.0.2.1" isMono />
          <TextField label="Country" {...field("country")} placeholder="DE" isNarrow />
          <TextField label="Bot score" {...field("score")} type="number" isNarrow />
          <TextField
            label="Expression"
            {...field("expression")}
            hint="Is evaluated too, although it is in no rule"
            rows={3}
            isMono
          />
        </Folded>
      </form>
    </Card>
  );
}

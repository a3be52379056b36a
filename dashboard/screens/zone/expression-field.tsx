import { useAsync } from "../../core/async.ts";
import { perform, type ApiFailure, type ApiMessage } from "../../core/client.ts";
import { usePlaced } from "../../core/placed.ts";
import { useSettled } from "../../core/settled.ts";
import { useZone } from "../../core/zone.ts";
import { TextField } from "../../parts/form.tsx";

interface ExpressionFieldProps {
  value: string;
  onChange: (value: string) => void;
  /** Why the rule was not saved. */
  failure: ApiFailure | undefined;
}

/** The API accepts this for all requests. It is no expression of the language, which the tracer reads. */
const matchAll = "true";

/** The expression of a rule of the zone. It is checked while it is typed, and a fault is marked with carets. */
export function ExpressionField({ value, onChange, failure }: ExpressionFieldProps) {
  const zone = useZone();
  const settled = useSettled(value).trim();
  const checked = useAsync(settled === "" || settled === matchAll ? undefined : settled, async (signal) =>
    perform(
      {
        op: "POST /accounts/{account_id}/request-tracer/trace",
        params: { account_id: zone.account.id },
        body: { method: "GET", url: `https://${zone.name}/`, skip_response: true, expression: settled },
      },
      signal,
    ),
  );
  const refused = usePlaced(failure, errorOf(failure));
  const message = errorOf(checked.failure)?.message ?? refused;
  const lines = /Filter parsing error \(\d+:\d+\):\n(.*\n *\^+)/.exec(message ?? "")?.[1];
  return (
    <>
      <TextField
        label="When requests match"
        value={value}
        onChange={onChange}
        rows={4}
        isMono
        // The reason is after the carets.
        error={message === undefined ? undefined : (/\^+ (.*)$/s.exec(message)?.[1] ?? message)}
      />
      {lines !== undefined && (
        <pre class="caret" aria-hidden="true">
          {lines}
        </pre>
      )}
    </>
  );
}

const errorOf = (failure: ApiFailure | undefined): ApiMessage | undefined =>
  failure?.errors.find(
    ({ source, message }) =>
      source?.pointer.endsWith("/expression") === true || message.includes("Filter parsing error"),
  );

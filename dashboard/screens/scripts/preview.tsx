import { useState } from "preact/hooks";
import { Code as CodeText } from "../../code/as-code.tsx";
import { bytes, plural } from "../../core/format.ts";
import { useSearch } from "../../core/router.ts";
import { headersOf, methods } from "../../core/typed-request.ts";
import { ActionForm, SelectField, TextField } from "../../parts/form.tsx";
import { Card, Facts, State } from "../../parts/layout.tsx";
import { uploadOf, type Code } from "./modules.ts";
import { outcomes, shownLogs, shownResponse, type PreviewRun } from "./preview-run.ts";
import type { ScriptPlace } from "./script.ts";

interface PreviewProps {
  place: ScriptPlace;
  code: Code;
  /** The modules that are changed here, and not saved. */
  texts: Readonly<Record<string, string>>;
}

/** Runs the code as it is on the screen for one request, and shows what it did. Visitors get what is deployed. */
export function Preview({ place, code, texts }: PreviewProps) {
  const [method, setMethod] = useSearch("preview_method", "GET");
  const [path, setPath] = useSearch("preview_path", "/");
  const [headers, setHeaders] = useState("");
  const [body, setBody] = useState("");
  const [run, setRun] = useState<PreviewRun>();
  const request = {
    method,
    url: /^https?:/.test(path) ? path : `https://${place.name}.example${path}`,
    headers: headersOf(headers),
    ...(body === "" ? {} : { body: { plain_text: body } }),
  };
  return (
    <Card title="Preview">
      <ActionForm<PreviewRun>
        call={{
          op: `POST ${place.one}/edge/preview`,
          params: place.params,
          body: uploadOf(code, texts, { request }),
        }}
        submit="Send"
        isQuestion
        onDone={setRun}
      >
        <p class="hint">
          Runs the code above for one request, without deploying it. Its bindings act on the real data of this
          account. Visitors still get the deployed version.
        </p>
        <SelectField label="Method" value={method} onChange={setMethod} options={methods} isNarrow />
        <TextField
          label="Path"
          value={path}
          onChange={setPath}
          hint="Or a whole URL, for code that looks at its host."
          isMono
          isRequired
        />
        <TextField
          label="Headers"
          value={headers}
          onChange={setHeaders}
          hint="One in each line: name: value"
          rows={3}
          isMono
        />
        <TextField label="Body" value={body} onChange={setBody} rows={3} isMono />
      </ActionForm>
      <div role="status">{run && <Summary run={run} />}</div>
      {run && <Details run={run} />}
    </Card>
  );
}

const Summary = ({ run }: { run: PreviewRun }) => (
  <p class="row">
    <State tone={run.outcome === "ok" ? "ok" : "bad"}>{outcomes[run.outcome]}</State>
    {run.response && <span>Status {run.response.status}</span>}
    <span>{plural(run.logs.length, "log line")}</span>
  </p>
);

function Details({ run }: { run: PreviewRun }) {
  const { response, logs, exceptions } = run;
  return (
    <div class="stack">
      <Facts
        facts={[
          ["CPU time", `${run.cpu_ms} ms`],
          ["Duration", `${run.wall_ms} ms`],
          ["Start of the code", `${run.startup_time_ms} ms`],
          ["Subrequests", String(run.subrequests)],
        ]}
      />
      {exceptions.map(({ name, message, stack }, index) => (
        <CodeText key={index} text={stack ?? `${name}: ${message}`} label={`Exception ${index + 1}`} />
      ))}
      <h3>Response</h3>
      {response === null ? (
        <p class="faint">The code did not answer.</p>
      ) : (
        <CodeText text={shownResponse(response)} label="Response" />
      )}
      {response?.is_truncated === true && (
        <p class="hint">A part of the body is missing after {bytes(response.body.length)}.</p>
      )}
      <h3>Logs</h3>
      {logs.length === 0 ? (
        <p class="faint">The code has logged nothing.</p>
      ) : (
        <CodeText text={shownLogs(logs)} label="Logs" />
      )}
      {run.logs_truncated && <p class="hint">There were more logs than are kept.</p>}
    </div>
  );
}

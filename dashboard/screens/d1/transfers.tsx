import { useState } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { invalidate } from "../../core/cache.ts";
import { asFailure, perform, type ApiFailure, type Call } from "../../core/client.ts";
import { bytes, count } from "../../core/format.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Field, Switch } from "../../parts/form.tsx";
import { Card, Notice } from "../../parts/layout.tsx";
import { Failure } from "../../parts/states.tsx";
import { databasePath, one, paramsOf } from "./database.ts";
import { md5Of } from "./md5.ts";

interface Transfer {
  status?: "active" | "complete" | "error";
  at_bookmark?: string;
  error?: string;
  filename?: string;
  upload_url?: string;
  result?: { signed_url?: string; filename?: string; num_queries?: number };
}

/** The state of a long call: its current step, its end, or its failure. */
function useSteps(): {
  step: string | undefined;
  failure: ApiFailure | undefined;
  run: (work: (showStep: (step: string) => void) => Promise<void>) => Promise<void>;
} {
  const [step, setStep] = useState<string | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  return {
    step,
    failure,
    async run(work) {
      setFailure(undefined);
      try {
        await work(setStep);
      } catch (error) {
        setFailure(asFailure(error));
      } finally {
        setStep(undefined);
      }
    },
  };
}

/** Polls until the job has ended. The server answers each poll within five seconds. */
async function ended(
  first: Call,
  poll: (bookmark: string) => Call,
): Promise<NonNullable<Transfer["result"]>> {
  let { result } = await perform<Transfer>(first);
  while (result.status === "active") result = (await perform<Transfer>(poll(result.at_bookmark!))).result;
  if (result.status === "error") throw new Error(result.error);
  return result.result ?? {};
}

/** A link of this server at this origin. */
const ownPath = (url: string): string => new URL(url).pathname + new URL(url).search;

export const Transfers = (props: { account: string; name: string }) => (
  <div class="cards wide">
    <Export {...props} />
    <Import {...props} />
  </div>
);

function Export({ account, name }: { account: string; name: string }) {
  const [hasData, setData] = useState(true);
  const [hasSchema, setSchema] = useState(true);
  const [link, setLink] = useState<{ url: string; name: string } | undefined>(undefined);
  const steps = useSteps();
  const op = `POST ${one}/export`;
  const refusal = useRefusal()(op);
  const call: Call = {
    op,
    params: paramsOf(account, name),
    body: {
      output_format: "polling",
      dump_options: { ...(!hasData && { no_data: true }), ...(!hasSchema && { no_schema: true }) },
    },
  };
  const start = steps.run.bind(undefined, async (showStep) => {
    showStep("Exporting …");
    const { signed_url: url, filename } = await ended(call, (current_bookmark) => ({
      ...call,
      body: { output_format: "polling", current_bookmark },
    }));
    setLink({ url: ownPath(url!), name: filename ?? `${name}.sql` });
  });
  return (
    <Card title="Export">
      <p>One state of the database as SQL text. Other queries wait while it is read.</p>
      <Switch label="Rows" isOn={hasData} onChange={setData} />
      <Switch label="Schema" isOn={hasSchema} onChange={setSchema} />
      <div class="row">
        <Button
          icon="download"
          isBusy={steps.step !== undefined}
          refusal={refusal ?? (hasData || hasSchema ? undefined : "choose rows, schema, or both")}
          onPress={() => void start()}
        >
          {steps.step ?? "Export"}
        </Button>
        <AsCode call={call} />
      </div>
      {steps.failure && <Failure failure={steps.failure} />}
      {link && (
        <Notice tone="ok">
          <a href={link.url} download={link.name}>
            Download {link.name}
          </a>
          . The link is valid for an hour.
        </Notice>
      )}
    </Card>
  );
}

function Import({ account, name }: { account: string; name: string }) {
  const [file, setFile] = useState<File | undefined>(undefined);
  const [done, setDone] = useState<string | undefined>(undefined);
  const steps = useSteps();
  const op = `POST ${one}/import`;
  const refusal = useRefusal()(op);
  const callOf = (body: object): Call => ({ op, params: paramsOf(account, name), body });
  const start = steps.run.bind(undefined, async (showStep) => {
    setDone(undefined);
    showStep("Reading the file …");
    const etag = await md5Of(file!);
    const { result: begun } = await perform<Transfer>(callOf({ action: "init", etag }));
    if (begun.upload_url !== undefined) {
      showStep("Uploading …");
      const response = await fetch(ownPath(begun.upload_url), { method: "PUT", body: file! });
      if (!response.ok) throw new Error(`The upload was answered ${response.status}`);
    }
    showStep("Importing …");
    const { num_queries: queries = 0 } = await ended(
      callOf({ action: "ingest", etag, filename: begun.filename }),
      (current_bookmark) => callOf({ action: "poll", current_bookmark }),
    );
    invalidate(databasePath(account, name));
    setDone(`${count(queries)} statements of ${file!.name} were run.`);
  });
  return (
    <Card title="Import">
      <p>All statements of a file are one transaction: if one fails, none has an effect.</p>
      <Field label="A file of SQL" hint={file && bytes(file.size)}>
        {(attributes) => (
          <input
            {...attributes}
            type="file"
            accept=".sql,text/plain,application/sql"
            onChange={(event) => setFile(event.currentTarget.files?.[0])}
          />
        )}
      </Field>
      <div class="row">
        <Button
          icon="upload"
          isBusy={steps.step !== undefined}
          refusal={refusal ?? (file === undefined ? "choose a file" : undefined)}
          onPress={() => void start()}
        >
          {steps.step ?? "Import"}
        </Button>
        <AsCode call={callOf({ action: "init", etag: "MD5_OF_THE_FILE" })} />
      </div>
      {steps.failure && <Failure failure={steps.failure} />}
      {done && <Notice tone="ok">{done}</Notice>}
    </Card>
  );
}

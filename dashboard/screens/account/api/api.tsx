import { useState } from "preact/hooks";
import operations, { type DocumentedOperation } from "virtual:operations";
import { send, pathOf, type Call } from "../../../core/client.ts";
import { permissionName, permissionOf, useRefusal } from "../../../core/permissions.ts";
import { useSearch } from "../../../core/router.ts";
import { Code } from "../../../code/as-code.tsx";
import { CodeTabs } from "../../../code/code-dialog.tsx";
import { Button } from "../../../parts/button.tsx";
import { Filter } from "../../../parts/filter.tsx";
import { TextField } from "../../../parts/form.tsx";
import { Card, Page } from "../../../parts/layout.tsx";
import { Empty } from "../../../parts/states.tsx";
import type { ScreenProps } from "../../../shell/route.ts";

const shownMax = 60;
const textMax = 200_000;

/** Every operation: its parameters and its body, sent from here, or as code. */
export default function Api({ account }: ScreenProps) {
  const [filter, setFilter] = useSearch("filter");
  const [id, setId] = useSearch("operation");
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = operations.filter(({ key, summary }) =>
    words.every((word) => `${key} ${summary}`.toLowerCase().includes(word)),
  );
  const chosen = operations.find((operation) => operation.id === id);
  return (
    <Page
      title="API"
      about={`${operations.length} operations. Calls from here are made with the permissions of this session.`}
    >
      <div class="explorer">
        <div>
          <div class="toolbar">
            <Filter label="Filter operations" value={filter} onChange={setFilter} />
          </div>
          <nav aria-label="Operations" class="operations">
            {found.slice(0, shownMax).map((operation) => (
              <button
                key={operation.id}
                type="button"
                aria-current={operation.id === id ? "true" : undefined}
                onClick={() => setId(operation.id, false)}
              >
                <Method of={operation} />
                <span>
                  <code>{operation.key.slice(operation.key.indexOf(" ") + 1)}</code>
                  <small>{operation.summary}</small>
                </span>
              </button>
            ))}
            {found.length > shownMax && (
              <p class="faint">{found.length - shownMax} more: filter to see them</p>
            )}
          </nav>
        </div>
        {chosen === undefined ? (
          <Empty icon="api" title="Choose an operation">
            <p>Its parameters, its body and its permission are shown here.</p>
          </Empty>
        ) : (
          <Explorer key={chosen.id} operation={chosen} account={account} />
        )}
      </div>
    </Page>
  );
}

const Method = ({ of: { key } }: { of: DocumentedOperation }) => {
  const method = key.slice(0, key.indexOf(" "));
  return <span class={`method ${method.toLowerCase()}`}>{method}</span>;
};

function Explorer({ operation, account }: { operation: DocumentedOperation; account: string }) {
  const names = [...operation.key.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const [params, setParams] = useState<Record<string, string>>(() =>
    Object.fromEntries(names.map((name) => [name, name === "account_id" ? account : ""])),
  );
  const [query, setQuery] = useState<Record<string, string>>({});
  const [body, setBody] = useState(() =>
    operation.sample === undefined ? "" : JSON.stringify(operation.sample, null, 2),
  );
  const [answer, setAnswer] = useState<{ status: number; text: string; ms: number } | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [isSure, setSure] = useState(false);
  const parsed = parse(body);
  const call: Call = {
    op: operation.key,
    params,
    query,
    ...(operation.sample !== undefined && parsed.value !== undefined && { body: parsed.value }),
  };
  const method = operation.key.slice(0, operation.key.indexOf(" "));
  const missing = names.find((name) => params[name] === "");
  const refusal =
    useRefusal()(operation.key) ?? (missing === undefined ? (parsed.fault ?? undefined) : `needs ${missing}`);
  const permission = permissionOf(operation.key);
  const isUpload = operation.content !== undefined && operation.sample === undefined;
  const run = async (): Promise<void> => {
    if (method === "DELETE" && !isSure) return setSure(true);
    setSure(false);
    setBusy(true);
    const startedAt = performance.now();
    try {
      const response = await send(pathOf(call), {
        method,
        ...(call.body !== undefined && {
          body: JSON.stringify(call.body),
          headers: { "content-type": "application/json" },
        }),
      });
      const text = await response.text();
      setAnswer({
        status: response.status,
        text: pretty(text),
        ms: Math.round(performance.now() - startedAt),
      });
    } catch (error) {
      setAnswer({ status: 0, text: (error as Error).message, ms: 0 });
    }
    setBusy(false);
  };
  return (
    <div class="stack">
      <Card
        title={
          <span class="row">
            <Method of={operation} />
            <code>{operation.key.slice(method.length + 1)}</code>
          </span>
        }
      >
        <p>
          {operation.summary}.{" "}
          {permission === undefined ? "Any token." : `Needs ${permissionName(permission)}.`}
        </p>
        {names.length > 0 && (
          <div class="form-row">
            {names.map((name) => (
              <TextField
                key={name}
                label={name}
                value={params[name]!}
                onChange={(value) => setParams({ ...params, [name]: value })}
                isMono
              />
            ))}
          </div>
        )}
        {operation.query.length > 0 && (
          <details>
            <summary>{operation.query.length} query parameters</summary>
            <div class="form-row">
              {operation.query.map(({ name, choices }) => (
                <TextField
                  key={name}
                  label={name}
                  value={query[name] ?? ""}
                  placeholder={choices?.join(", ") ?? ""}
                  onChange={(value) => setQuery({ ...query, [name]: value })}
                  isMono
                />
              ))}
            </div>
          </details>
        )}
        {operation.sample !== undefined && (
          <TextField
            label="Body"
            value={body}
            onChange={setBody}
            rows={Math.min(20, body.split("\n").length + 1)}
            isMono
            error={parsed.fault}
          />
        )}
        {isUpload && <p class="hint">The body is {operation.content}. Send it with the command below.</p>}
        <div class="row">
          <Button
            kind={method === "DELETE" ? "bad" : "primary"}
            refusal={refusal ?? (isUpload ? "needs a file: send it with curl" : undefined)}
            isBusy={isBusy}
            onPress={() => void run()}
          >
            {isSure ? "Really delete" : "Send"}
          </Button>
        </div>
        <CodeTabs call={call} />
      </Card>
      {answer !== undefined && (
        <Card title={`Answer: ${answer.status} in ${answer.ms} ms`}>
          <Code text={answer.text.slice(0, textMax)} label="Answer" />
        </Card>
      )}
    </div>
  );
}

function parse(text: string): { value?: unknown; fault?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

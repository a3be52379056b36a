import type { Command } from "commander";
import { isFinal } from "../products/workflows/transitions.ts";
import type { detailsResource } from "../products/workflows/api/resource.ts";
import type { TimelineStep } from "../products/workflows/api/timeline.ts";
import { printLine } from "./output.ts";

type Details = Omit<ReturnType<typeof detailsResource>, "steps"> & { steps: TimelineStep[] };
interface WatchOptions {
  api: string;
  token?: string;
  account?: string;
  json?: boolean;
}

/** `workflow watch`: follows an instance through the API of a running server. */
export function registerWorkflowCommand(program: Command): void {
  const workflow = program.command("workflow").description("inspect workflows of a running server");
  const watch = workflow
    .command("watch <workflow> <instance>")
    .description("print the progress of an instance until it ends")
    .option(
      "--api <url>",
      "URL of its management API",
      process.env["SELVEDGE_API"] ?? "http://127.0.0.1:8787/client/v4",
    )
    .option("--token <token>", "an API token (default: SELVEDGE_API_TOKEN)")
    .option("--account <id>", "the account id (default: the token's first account)")
    .option("--json", "print each state as JSON")
    .action(async (name: string, instance: string, options: WatchOptions) => {
      const { status } = await follow(name, instance, options);
      process.exitCode = status === "complete" ? 0 : 1;
    });
  for (const command of [workflow, watch]) command.exitOverride();
}

async function follow(name: string, instance: string, options: WatchOptions): Promise<Details> {
  const token = options.token ?? process.env["SELVEDGE_API_TOKEN"];
  if (token === undefined)
    throw new Error("Expected an API token in --token or SELVEDGE_API_TOKEN but received none");
  const headers = { authorization: `Bearer ${token}` };
  const account = options.account ?? (await firstAccount(options.api, headers));
  const path = `/accounts/${account}/workflows/${encodeURIComponent(name)}/instances/${encodeURIComponent(instance)}`;
  const response = await fetch(`${options.api}${path}/subscribe`, { headers });
  if (!response.ok) throw new Error(await errorTextOf(response));
  const printer = new Printer();
  let last: Details | undefined;
  for await (const data of serverSentEvents(response.body!)) {
    last = JSON.parse(data) as Details;
    if (options.json === true) printLine(data);
    else printer.print(last);
  }
  if (last === undefined || !isFinal(last.status as never))
    throw new Error("The instance was deleted, or its server stopped");
  return last;
}

export async function firstAccount(api: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${api}/accounts`, { headers });
  if (!response.ok) throw new Error(await errorTextOf(response));
  const { result } = (await response.json()) as { result: { id: string }[] };
  if (result[0] === undefined) throw new Error("The token has no access to any account");
  return result[0].id;
}

export async function errorTextOf(response: Response): Promise<string> {
  const { errors } = (await response.json()) as { errors: { code: number; message: string }[] };
  return errors.map(({ code, message }) => `${message} (${code})`).join("; ");
}

async function* serverSentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
      text = text.slice(end + 2);
      if (data !== undefined && data !== "{}") yield data;
    }
  }
}

/** Prints a line for every change. */
class Printer {
  readonly #seen = new Map<string, string>();
  #status = "";

  print({ status, steps, output, error, warnings }: Details): void {
    for (const [index, step] of steps.entries()) {
      const text = describe(step);
      const key = String(index);
      if (this.#seen.get(key) !== text) printLine(text);
      this.#seen.set(key, text);
    }
    for (const warning of warnings) {
      if (!this.#seen.has(warning)) printLine(`warning: ${warning}`);
      this.#seen.set(warning, "");
    }
    if (status !== this.#status) printLine(`instance ${status}`);
    this.#status = status;
    if (status === "complete") printLine(`output ${JSON.stringify(output)}`);
    if (error !== null) printLine(`error ${error.name}: ${error.message}`);
  }
}

function describe(step: TimelineStep): string {
  if (step.type === "termination") return "terminated";
  const ms = (end: string): number => Date.parse(end) - Date.parse(step.start);
  const head = `${step.start} ${step.type} ${step.name}`;
  if (step.error !== null) return `${head} failed: ${step.error.name}: ${step.error.message}`;
  if ("attempts" in step) {
    const attempt = step.attempts.length > 1 ? ` (attempt ${step.attempts.length})` : "";
    const last = step.attempts.at(-1)?.error;
    if (step.end !== null) return `${head} complete in ${ms(step.end)} ms${attempt}: ${step.output}`;
    return `${head} ${last === null || last === undefined ? "running" : `retries after ${last.message}`}${attempt}`;
  }
  if (step.finished) return `${head} over after ${ms(step.end)} ms`;
  return `${head} until ${step.end}`;
}

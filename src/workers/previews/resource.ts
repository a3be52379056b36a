import { z } from "zod";
import { outcomes, type PreviewRun } from "./run.ts";
import type { TakenResponse } from "./response.ts";

export const PreviewSchema = z
  .object({
    outcome: z.enum(outcomes),
    response: z
      .object({
        status: z.int(),
        headers: z.array(z.object({ name: z.string(), value: z.string() })),
        body: z.string(),
        body_encoding: z.enum(["utf-8", "base64"]),
        is_truncated: z.boolean().meta({ description: "Whether a part of the body is missing" }),
      })
      .nullable()
      .meta({ description: "Null if the code did not answer" }),
    logs: z.array(z.object({ level: z.string(), message: z.array(z.unknown()), timestamp: z.number() })),
    logs_truncated: z.boolean(),
    exceptions: z.array(
      z.object({
        name: z.string(),
        message: z.string(),
        stack: z.string().optional(),
        timestamp: z.number(),
      }),
    ),
    startup_time_ms: z.number(),
    cpu_ms: z.number().meta({ description: "CPU time of the process for this request" }),
    wall_ms: z.number(),
    subrequests: z.int().meta({ description: "With those of scripts that it called" }),
  })
  .meta({ id: "ScriptPreview" });

/** A run as the API shows it. */
export function previewResource(run: PreviewRun): z.input<typeof PreviewSchema> {
  const { logs, truncated, exceptions } = run.collected;
  return {
    outcome: run.outcome,
    response: run.response === undefined ? null : responseResource(run.response),
    logs: logs.map((log) => ({ ...log, message: [...log.message] })),
    logs_truncated: truncated,
    exceptions,
    startup_time_ms: rounded(run.startupMs),
    cpu_ms: rounded(run.cpuMs),
    wall_ms: rounded(run.wallMs),
    subrequests: run.subrequests,
  };
}

function responseResource({ status, headers: raw, body, isWhole }: TakenResponse) {
  const headers: { name: string; value: string }[] = [];
  for (let i = 0; i < raw.length; i += 2) headers.push({ name: raw[i]!.toLowerCase(), value: raw[i + 1]! });
  const text = textOf(body, isWhole);
  return {
    status,
    headers,
    body: text ?? body.toString("base64"),
    body_encoding: text === undefined ? ("base64" as const) : ("utf-8" as const),
    is_truncated: !isWhole,
  };
}

/** Undefined for bytes that are not UTF-8. The end of a text may be missing within a character. */
function textOf(body: Buffer, isWhole: boolean): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body, { stream: !isWhole });
  } catch {
    return undefined;
  }
}

/** Milliseconds with one decimal. */
const rounded = (ms: number): number => (Number.isFinite(ms) ? Math.max(0, Math.round(ms * 10) / 10) : 0);

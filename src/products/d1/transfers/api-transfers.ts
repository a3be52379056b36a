import { Readable } from "node:stream";
import { z } from "zod";
import { apiErrors } from "../../../control/api/errors.ts";
import { inputErrors } from "../../../platform/domain-error.ts";
import { baseUrl } from "../../../control/api/base-url.ts";
import { operationsFor, type Call } from "../../../control/api/operation.ts";
import { within } from "../../../platform/util/ends-within.ts";
import { d1ErrorCodes } from "../api-errors.ts";
import { databaseOf, databasePath, edit, read, type D1Services } from "../database-call.ts";
import type { Job } from "./transfers.ts";

const { operation, rawOperation } = operationsFor<D1Services>(d1ErrorCodes);

/** How long a response waits for the end of the job, because clients poll without a pause. */
const waitMs = 5000;
const bookmarkText = z.string().max(128);
const TokenQuery = z.object({ token: z.string().max(128).optional() });
const md5 = z.string().regex(/^[0-9a-f]{32}$/);

const TransferSchema = z
  .object({
    success: z.boolean(),
    type: z.enum(["import", "export"]).optional(),
    status: z.enum(["active", "complete", "error"]).optional(),
    at_bookmark: z.string().optional(),
    messages: z.array(z.string()).optional(),
    error: z.string().optional(),
    errors: z.array(z.string()).optional(),
    filename: z.string().optional(),
    upload_url: z.string().optional(),
    result: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "D1Transfer" });
type Transfer = z.input<typeof TransferSchema>;

/** The URL of a link, with the host that the client used for this call. */
function urlOf(
  { incoming, account }: Pick<Call<unknown, unknown, D1Services>, "incoming" | "account">,
  filename: string,
  token: string,
): string {
  const prefix = incoming.url!.split("/accounts/", 1)[0]!;
  return `${baseUrl(incoming, "http")}${prefix}/accounts/${account.id}/d1/transfers/${filename}?token=${token}`;
}

/** The token of a link, which is the only authorization of these calls. */
function tokenOf({
  query,
  incoming,
}: Pick<Call<{ token?: string | undefined }, unknown, D1Services>, "query" | "incoming">): string {
  const token = query.token ?? /^Bearer +(\S+)$/i.exec(incoming.headers.authorization ?? "")?.[1];
  if (token === undefined) throw apiErrors.noCredentials();
  return token;
}

async function progressOf(job: Job, more: () => Record<string, unknown>): Promise<Transfer> {
  await within(waitMs, job.done).catch(() => {});
  const { kind: type, status, bookmark, error } = job;
  const common = { success: true, type, status, at_bookmark: bookmark };
  if (status === "active") return { ...common, messages: [`The ${type} is in progress`] };
  if (status === "error") return { ...common, messages: [], error: error!, errors: [error!] };
  return { ...common, messages: [`The ${type} is complete`], result: more() };
}

const imported = async (job: Job): Promise<Transfer> =>
  progressOf(job, () => {
    const { bookmark, durationMs, num_queries, ...meta } = job.imported!;
    return {
      final_bookmark: bookmark,
      num_queries,
      meta: { served_by: "selvedge", duration: durationMs, changed_db: true, ...meta },
    };
  });

function needed(value: string | undefined, name: string, action: string): string {
  if (value === undefined)
    throw inputErrors.invalid(`Expected ${name} for the action "${action}"`, `/body/${name}`);
  return value;
}

const { scope, permission } = edit.access;

export const transferOperations = [
  operation({
    id: "d1_database_import",
    audit: "ahead",
    method: "POST",
    path: `${databasePath}/import`,
    summary: "Import SQL text: init gives an upload URL, ingest runs the file, poll waits for its end",
    access: { scope, permission },
    body: z.strictObject({
      action: z.enum(["init", "ingest", "poll"]),
      etag: md5.optional(),
      filename: z.string().max(255).optional(),
      current_bookmark: bookmarkText.optional(),
    }),
    result: TransferSchema,
    async handle(call): Promise<Transfer> {
      const database = databaseOf(call);
      const { action, current_bookmark, ...body } = call.body;
      const { d1Transfers } = call.services;
      if (action === "poll")
        return imported(
          d1Transfers.job("import", database, needed(current_bookmark, "current_bookmark", action)),
        );
      const etag = needed(body.etag, "etag", action);
      if (action === "ingest")
        return imported(await d1Transfers.ingest(database, needed(body.filename, "filename", action), etag));
      const { filename, token } = await d1Transfers.init(database, etag);
      return {
        success: true,
        filename,
        ...(token !== undefined && { upload_url: urlOf(call, filename, token) }),
      };
    },
  }),
  operation({
    id: "d1_database_export",
    audit: "ahead",
    method: "POST",
    path: `${databasePath}/export`,
    summary: "Export a database as SQL text, to a link that is valid for one hour",
    access: read.access,
    body: z.strictObject({
      output_format: z.literal("polling"),
      current_bookmark: bookmarkText.optional(),
      dump_options: z
        .strictObject({
          no_data: z.boolean().optional(),
          no_schema: z.boolean().optional(),
          tables: z.array(z.string().max(1024)).max(10_000).optional(),
          compatibility: z.literal("d1").optional(),
        })
        .optional(),
    }),
    result: TransferSchema,
    async handle(call): Promise<Transfer> {
      const database = databaseOf(call);
      const { d1Transfers } = call.services;
      const { current_bookmark, dump_options = {} } = call.body;
      const job =
        current_bookmark === undefined
          ? await d1Transfers.export(database, dump_options)
          : d1Transfers.job("export", database, current_bookmark);
      return progressOf(job, () => ({
        filename: job.filename,
        signed_url: urlOf(call, job.filename, d1Transfers.downloadOf(job)),
      }));
    },
  }),
  rawOperation({
    id: "d1_upload",
    audit: "none",
    method: "PUT",
    path: "/accounts/{account_id}/d1/transfers/{file_name}",
    summary: "Upload the file of an import, without other credentials",
    access: { scope: "own" },
    query: TokenQuery,
    acceptAnyContentType: true,
    bodyKind: "own",
    async handle(call) {
      const { account, params, incoming, services, requestId } = call;
      const link = { accountId: account.id, filename: params["file_name"]!, token: tokenOf(call) };
      const { etag } = await services.d1Transfers.receive(link, incoming);
      return new Response(null, { headers: { etag: `"${etag}"`, "x-request-id": requestId } });
    },
  }),
  rawOperation({
    id: "d1_download",
    method: "GET",
    path: "/accounts/{account_id}/d1/transfers/{file_name}",
    summary: "Download the file of an export, without other credentials",
    access: { scope: "own" },
    query: TokenQuery,
    async handle(call) {
      const { account, params, services, requestId } = call;
      const link = { accountId: account.id, filename: params["file_name"]!, token: tokenOf(call) };
      const { filename, stream, bytes } = await services.d1Transfers.download(link);
      return new Response(Readable.toWeb(stream) as ReadableStream<Uint8Array>, {
        headers: {
          "content-type": "application/sql",
          "content-length": String(bytes),
          "content-disposition": `attachment; filename="${filename}"`,
          "x-request-id": requestId,
        },
      });
    },
  }),
];

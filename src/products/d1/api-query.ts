import { z } from "zod";
import type { PreparedJson } from "../../control/api/envelope.ts";
import { operationsFor, type Call } from "../../control/api/operation.ts";
import { d1ErrorCodes } from "./api-errors.ts";
import { databaseLimits } from "./database.ts";
import { databaseOf, databasePath, edit, type D1Services } from "./database-call.ts";
import { d1Errors } from "./errors.ts";
import { isRead } from "./worker/is-read.ts";
import { sensitive } from "../../control/api/sensitive.ts";

const { operation } = operationsFor<D1Services>(d1ErrorCodes);

const statementsMax = 10_000;
/** The public limit of a value. */
const blobBytesMax = 2_000_000;
const sql = z.string().max(databaseLimits.callBytesMax);
const params = z
  .array(
    z.union([
      z.string(),
      z.number(),
      z.boolean(),
      z.null(),
      z.array(z.int().min(0).max(255)).max(blobBytesMax),
    ]),
  )
  .max(100)
  .optional();
const QuerySchema = z.strictObject({
  sql: sensitive(sql).optional(),
  params: sensitive(params),
  batch: z
    .array(z.strictObject({ sql: sensitive(sql), params: sensitive(params) }))
    .min(1)
    .max(statementsMax)
    .optional(),
});

const MetaSchema = z.looseObject({
  served_by: z.string(),
  duration: z.number(),
  changes: z.int(),
  last_row_id: z.int(),
  changed_db: z.boolean(),
  size_after: z.int(),
  rows_read: z.int(),
  rows_written: z.int(),
});

const statementsOf = ({ sql = "", params = [], batch }: z.output<typeof QuerySchema>) =>
  batch ?? [{ sql, params }];

/** The rows go from the database to the client unchanged. */
async function run(
  call: Call<unknown, z.output<typeof QuerySchema>, D1Services>,
  format: string,
): Promise<PreparedJson> {
  const { body, services } = call;
  const database = databaseOf(call);
  if ((body.sql === undefined) === (body.batch === undefined)) throw d1Errors.parameters();
  const statements = statementsOf(body);
  const path = `/statements?resultsFormat=${format}`;
  const options = { isRead: statements.every((each) => isRead(each.sql)) };
  return services.d1Calls.results(database, path, statements, options);
}

const common = {
  method: "POST",
  isView: (body: z.output<typeof QuerySchema>) => statementsOf(body).every(({ sql }) => isRead(sql)),
  ...edit,
  body: QuerySchema,
  bodyBytesMax: databaseLimits.callBytesMax,
} as const;

export const queryOperations = [
  operation({
    ...common,
    id: "d1_database_query",
    audit: "ahead",
    path: `${databasePath}/query`,
    summary: "Run SQL statements in one transaction. Each has a result, with rows as objects",
    result: z.array(
      z
        .object({
          success: z.literal(true),
          meta: MetaSchema,
          results: z.array(z.record(z.string(), z.unknown())),
        })
        .meta({ id: "D1Result" }),
    ),
    handle: async (call) => run(call, "ARRAY_OF_OBJECTS"),
  }),
  operation({
    ...common,
    id: "d1_database_raw",
    audit: "ahead",
    path: `${databasePath}/raw`,
    summary: "Run SQL statements in one transaction. Each has a result, with rows as arrays",
    result: z.array(
      z
        .object({
          success: z.literal(true),
          meta: MetaSchema,
          results: z.object({ columns: z.array(z.string()), rows: z.array(z.array(z.unknown())) }),
        })
        .meta({ id: "D1RawResult" }),
    ),
    handle: async (call) => run(call, "ROWS_AND_COLUMNS"),
  }),
];

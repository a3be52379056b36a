import { z } from "zod";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { absentAnalytics } from "../../control/api/server/absent-products.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { d1ErrorCodes } from "./api-errors.ts";
import type { D1Services } from "./database-call.ts";

const { rawOperation } = operationsFor<D1Services>(d1ErrorCodes);

const time = z
  .string()
  .max(64)
  .refine((text) => !Number.isNaN(Date.parse(text)), { error: "a time such as 2026-10-31T12:00:00Z" });

/** The variables of the only supported query. */
const VariablesSchema = z.strictObject({
  accountTag: z.string().max(64),
  filter: z.strictObject({
    AND: z
      .array(
        z.strictObject({ datetimeHour_geq: time, datetimeHour_leq: time, databaseId: z.string().max(64) }),
      )
      .length(1),
  }),
});

const dataset = "d1AnalyticsAdaptiveGroups";
/** The words in the query of `wrangler d1 info`, except the names of variables and types. */
const words = new Set([
  ...["viewer", "accounts", "filter", "accountTag", dataset, "limit", "sum", "dimensions", "datetimeHour"],
  ...["readQueries", "writeQueries", "rowsRead", "rowsWritten"],
]);

/** Whether a query asks only for the figures of databases. */
function isKnown(query: string): boolean {
  const body = query.slice(query.indexOf("{")).replaceAll(/\$\w+/g, "");
  const used: readonly string[] = body.match(/[A-Za-z_]\w*/g) ?? [];
  return used.includes(dataset) && used.every((word) => words.has(word));
}

/** The part of the GraphQL analytics that `wrangler d1 info` uses. */
export const analyticsOperations = [
  rawOperation({
    id: "graphql_query",
    audit: "none",
    method: "POST",
    path: "/graphql",
    summary: "Answer the GraphQL query of `wrangler d1 info`; other queries are refused",
    access: { scope: "caller" },
    body: z.strictObject({
      query: z.string().max(10_000),
      operationName: z.string().max(200).nullish(),
      variables: z.record(z.string(), z.unknown()).nullish(),
    }),
    async handle({ actor, body, services, requestId }) {
      if (!isKnown(body.query)) throw absentAnalytics();
      const parsed = VariablesSchema.safeParse(body.variables);
      if (!parsed.success)
        throw apiErrors.invalid(
          "Expected the variables accountTag and filter, as wrangler sends them, for this query",
          "/variables",
        );
      const { accountTag, filter } = parsed.data;
      if (!actor.can("d1:read", { accountId: accountTag }))
        throw apiErrors.unauthorized('"D1 Read" on the account');
      const { datetimeHour_geq: from, datetimeHour_leq: to, databaseId } = filter.AND[0]!;
      const database = services.d1Databases.find(accountTag, databaseId);
      const hours =
        database === undefined ? [] : await services.d1Usage.of(database, Date.parse(from), Date.parse(to));
      const groups = hours.map(({ hourMs, figures }) => {
        const [readQueries, writeQueries, rowsRead, rowsWritten] = figures;
        return {
          sum: { readQueries, writeQueries, rowsRead, rowsWritten },
          dimensions: { datetimeHour: isoTime(hourMs) },
        };
      });
      const answer = { data: { viewer: { accounts: [{ [dataset]: groups }] } }, errors: null };
      return Response.json(answer, { headers: { "x-request-id": requestId } });
    },
  }),
];

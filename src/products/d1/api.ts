import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { d1ErrorCodes } from "./api-errors.ts";
import { analyticsOperations } from "./api-analytics.ts";
import { queryOperations } from "./api-query.ts";
import { timeTravelOperations } from "./api-time-travel.ts";
import { transferOperations } from "./transfers/api-transfers.ts";
import { databaseLimits, type D1Database } from "./database.ts";
import { databaseOf, databasePath, databasesPath, edit, read, type D1Services } from "./database-call.ts";

const { listOperation, operation } = operationsFor<D1Services>(d1ErrorCodes);

const ReadReplicationSchema = z.strictObject({ mode: z.enum(["auto", "disabled"]) });
const fields = [
  "uuid",
  "name",
  "created_at",
  "version",
  "jurisdiction",
  "num_tables",
  "file_size",
  "running_in_region",
  "read_replication",
] as const;

/** Comma-separated names, as wrangler sends them, or one name in each parameter, as the client libraries do. */
const FieldsQuery = z
  .union([z.string().max(1024), z.array(z.string().max(64)).max(fields.length)])
  .transform((given) => (typeof given === "string" ? given.split(",") : given))
  .pipe(z.array(z.enum(fields)));

const ListedSchema = z
  .object({
    uuid: z.string(),
    name: z.string(),
    version: z.literal("production"),
    created_at: z.string().meta({ format: "date-time" }),
    jurisdiction: z.string().nullable(),
  })
  .meta({ id: "D1ListedDatabase" });
const DatabaseSchema = ListedSchema.extend({
  num_tables: z.int(),
  file_size: z.int(),
  running_in_region: z.string().optional(),
  read_replication: ReadReplicationSchema,
})
  .partial()
  .meta({ id: "D1Database" });

const listed = ({ id, name, createdOn, jurisdiction }: D1Database): z.input<typeof ListedSchema> => ({
  uuid: id,
  name,
  version: "production",
  created_at: isoTime(createdOn),
  jurisdiction,
});

const described = (database: D1Database, figures: DatabaseFigures): z.input<typeof DatabaseSchema> => ({
  ...listed(database),
  ...figures,
  ...(database.locationHint !== null && { running_in_region: database.locationHint.toUpperCase() }),
  read_replication: { mode: database.readReplication },
});

interface DatabaseFigures {
  num_tables: number;
  file_size: number;
}

async function figuresOf(database: D1Database, { d1Calls }: D1Services): Promise<DatabaseFigures> {
  return (await d1Calls.ask<DatabaseFigures>(database, "/facts", {}, { isRead: true })).value;
}

const update = (method: "PUT" | "PATCH") =>
  operation({
    id: method === "PUT" ? "d1_database_update" : "d1_database_edit",
    hidesBefore: true,
    method,
    path: databasePath,
    summary: "Change the setting for read replication, which is stored without effect",
    ...edit,
    body: z.strictObject({
      read_replication: method === "PUT" ? ReadReplicationSchema : ReadReplicationSchema.optional(),
    }),
    result: DatabaseSchema,
    async handle(call) {
      const database = databaseOf(call);
      const { services, body } = call;
      const changed =
        body.read_replication === undefined
          ? database
          : await services.d1Databases.setReadReplication(database, body.read_replication.mode);
      return described(changed, await figuresOf(changed, services));
    },
  });

export const d1Operations = [
  listOperation({
    id: "d1_database_list",
    method: "GET",
    path: databasesPath,
    summary: "List the databases of an account, the newest first",
    ...read,
    query: pageQuery({ default: 1000, max: 10_000 }).extend({
      name: z.string().max(databaseLimits.nameMax).optional(),
    }),
    result: ListedSchema,
    async handle({ account, query, services }) {
      const all = services.d1Databases.list(account.id);
      const { name } = query;
      const found = name === undefined ? all : all.filter((each) => each.name.includes(name));
      return paginate(found.map(listed), query);
    },
  }),
  operation({
    id: "d1_database_create",
    method: "POST",
    path: databasesPath,
    summary: "Create a database",
    ...edit,
    body: z.strictObject({
      name: z
        .string()
        .min(1)
        .max(databaseLimits.nameMax)
        .regex(/^[\w-]+$/)
        // A database is found by its id or its name.
        .refine((name) => !z.uuid().safeParse(name).success, "Expected a name that is not a UUID"),
      primary_location_hint: z.enum(["wnam", "enam", "weur", "eeur", "apac", "oc"]).optional(),
      jurisdiction: z.enum(["eu", "fedramp", "us"]).optional(),
      read_replication: ReadReplicationSchema.optional(),
    }),
    result: DatabaseSchema,
    async handle({ account, body, services }) {
      const database = await services.d1Databases.create(account.id, {
        name: body.name,
        locationHint: body.primary_location_hint ?? null,
        jurisdiction: body.jurisdiction ?? null,
        readReplication: body.read_replication?.mode ?? "disabled",
      });
      return described(database, { num_tables: 0, file_size: 4096 });
    },
  }),
  operation({
    id: "d1_database_get",
    method: "GET",
    path: databasePath,
    summary: "Get a database, by its id or its name",
    ...read,
    query: z.object({ fields: FieldsQuery.optional() }),
    result: DatabaseSchema,
    async handle(call) {
      const database = databaseOf(call);
      const asked = call.query.fields;
      const shows = (name: (typeof fields)[number]): boolean => asked === undefined || asked.includes(name);
      const needsFigures = shows("num_tables") || shows("file_size");
      const figures = needsFigures
        ? await figuresOf(database, call.services)
        : { num_tables: 0, file_size: 0 };
      const all = described(database, figures);
      return Object.fromEntries(fields.filter(shows).map((name) => [name, all[name]]));
    },
  }),
  update("PUT"),
  update("PATCH"),
  operation({
    id: "d1_database_delete",
    hidesBefore: true,
    method: "DELETE",
    path: databasePath,
    summary: "Delete a database with its data",
    ...edit,
    result: z.null(),
    async handle(call) {
      const database = databaseOf(call);
      const { d1Databases, d1Transfers } = call.services;
      await d1Databases.delete(database);
      await d1Transfers.forget(database);
      return null;
    },
  }),
  ...queryOperations,
  ...transferOperations,
  ...timeTravelOperations,
  ...analyticsOperations,
];

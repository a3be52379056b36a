import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve, temporaryFolder, type ServerProcess } from "./helpers/process.ts";
import { callsOf, type Calls } from "./runtime/platform.ts";

/** A new capability: the files of its folder, as a contributor writes them. */
const folder = {
  "declaration.ts": `import { binding, declare, table } from "../../declaration.ts";
    import type { noteType } from "./binding.ts";

    interface NotesTable {
      account_id: string;
      name: string;
      text: string;
    }

    export const declaration = declare({
      settings: {
        notesMax: {
          kind: "count", min: 1, max: 1000, flag: "notes-max", env: "SELVEDGE_NOTES_MAX", default: 100,
          describe: "notes of the installation",
        },
      },
      tables: { notes: table<NotesTable>() },
      migrations: { "9000-notes": async () => (await import("./migrations/9000-notes.ts")).notes },
      changes: ["note"],
      bindings: { note: binding<typeof noteType>() },
    });`,
  "capability.ts": `import { capability } from "../../capability.ts";
    import { storage } from "../../platform/capability.ts";
    import { bindings } from "../../workers/capability.ts";
    import { noteErrorCodes } from "./api.ts";
    import { noteBinding, noteType } from "./binding.ts";
    import { declaration } from "./declaration.ts";
    import { noteErrors, Notes } from "./notes.ts";

    export const notes = capability({
      name: "notes",
      declares: declaration,
      needs: [storage, bindings],
      create: ({ config, storage: database }) => ({ notes: new Notes(database, config.notesMax) }),
      operations: async () => (await import("./api.ts")).noteOperations,
      errors: [{ title: "Notes", errors: noteErrors, codes: noteErrorCodes }],
      idParameters: ["note_id"],
      bindings: (services) => ({
        note: {
          type: noteType,
          isolate: { module: "products/notes/worker/binding.js", factory: "note", className: "Note" },
          handler: noteBinding(services.notes),
        },
      }),
      edgeHandlers: (services) => [
        {
          phase: "snippets",
          async handler({ path, response }) {
            if (path !== "/note") return false;
            response.end(services.notes.texts.get("greeting"));
            return true;
          },
        },
      ],
      health: (services) => ({
        async notes() {
          if (services.notes.texts.size === 0) throw new Error("there are no notes");
        },
      }),
      load: (services) => services.notes.load(),
    });`,
  "notes.ts": `import { defineErrors } from "../../platform/domain-error.ts";
    import type { Storage } from "../../platform/storage/storage.ts";
    import { all, insert } from "./store.ts";

    export const noteErrors = defineErrors("notes", {
      tooMany: (max: number) => \`Expected at most \${max} notes\`,
    });

    /** All notes are in memory, and read again when one has changed. */
    export class Notes {
      texts: ReadonlyMap<string, string> = new Map();
      readonly #storage: Storage;
      readonly #max: number;

      constructor(storage: Storage, max: number) {
        this.#storage = storage;
        this.#max = max;
        const read = async () => {
          const texts = await all(storage.read);
          return () => void (this.texts = texts);
        };
        storage.onChange(async (changes) => {
          if (changes.some(({ kind }) => kind === "note")) (await read())();
        }, read);
      }

      async load(): Promise<void> {
        this.texts = await all(this.#storage.read);
      }

      async add(accountId: string, name: string, text: string): Promise<void> {
        if (this.texts.size >= this.#max) throw noteErrors.tooMany(this.#max);
        await this.#storage.write(async (trx, changed) => {
          await insert(trx, { account_id: accountId, name, text });
          changed({ kind: "note", id: name, parentId: accountId });
        });
      }
    }`,
  "store.ts": `import type { Database } from "../../platform/storage/schema.ts";
    import type { Read, Write } from "../../platform/storage/storage.ts";

    export const all = async (read: Read): Promise<Map<string, string>> =>
      new Map((await read.selectFrom("notes").selectAll().execute()).map(({ name, text }) => [name, text]));

    export async function insert(trx: Write, note: Database["notes"]): Promise<void> {
      await trx.insertInto("notes").values(note).execute();
    }`,
  "migrations/9000-notes.ts": `import type { Migration } from "kysely/migration";

    export const notes: Migration = {
      async up(db) {
        await db.schema
          .createTable("notes")
          .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
          .addColumn("name", "text", (c) => c.notNull())
          .addColumn("text", "text", (c) => c.notNull())
          .addPrimaryKeyConstraint("notes_key", ["account_id", "name"])
          .execute();
      },
    };`,
  "api.ts": `import { z } from "zod";
    import type { ErrorCodes } from "../../control/api/errors.ts";
    import { operationsFor } from "../../control/api/operation.ts";
    import type { noteErrors, Notes } from "./notes.ts";

    export const noteErrorCodes: ErrorCodes<typeof noteErrors> = { "notes.tooMany": [409, 1409] };
    const { operation } = operationsFor<{ notes: Notes }>(noteErrorCodes);

    export const noteOperations = [
      operation({
        id: "note_create",
        method: "POST",
        path: "/accounts/{account_id}/notes",
        summary: "Add a note",
        access: { scope: "account", permission: "workers_scripts:edit" },
        body: z.strictObject({ name: z.string().max(100), text: z.string().max(1000) }),
        result: z.strictObject({ name: z.string() }),
        async handle({ services, account, body: { name, text } }) {
          await services.notes.add(account.id, name, text);
          return { name };
        },
      }),
      operation({
        id: "note_get",
        method: "GET",
        path: "/accounts/{account_id}/notes/{note_id}",
        summary: "Get a note",
        access: { scope: "account", permission: "workers_scripts:read" },
        result: z.strictObject({ text: z.string().nullable() }),
        handle: async ({ services, params }) => ({ text: services.notes.texts.get(params["note_id"]!) ?? null }),
      }),
    ];`,
  "binding.ts": `import { z } from "zod";
    import { bindingType } from "../../workers/binding-type.ts";
    import type { BindingHandler } from "../../workers/binding.ts";
    import type { Notes } from "./notes.ts";

    export const noteType = bindingType({ fields: { note: z.string().max(100) } });

    export const noteBinding =
      (notes: Notes): BindingHandler<"note"> =>
      async ({ binding, response }) => {
        response.end(notes.texts.get(binding.note));
      };`,
  "worker/binding.ts": `type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

    export function note(call: BindingFetch): object {
      return { text: async () => (await call("/")).text() };
    }`,
};

const scratch = temporaryFolder();
const copied = ["bin", "dashboard", "docs/reference", "packaging", "scripts", "src"];
const single = [
  "bom.cdx.json",
  "docs/metrics.md",
  "openapi.json",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
];
let server: ServerProcess;
let token: string;
let calls: Calls;

beforeAll(async () => {
  for (const path of [...copied, ...single]) cpSync(path, join(scratch, path), { recursive: true });
  symlinkSync(resolve("node_modules"), join(scratch, "node_modules"));
  for (const [name, text] of Object.entries(folder)) {
    const file = join(scratch, "src/products/notes", name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text.replace(/^ {4}/gm, ""));
  }
  // The line in the list, and its import.
  const list = join(scratch, "src/capabilities.ts");
  const lines = readFileSync(list, "utf8").split("\n");
  lines.unshift('import { notes } from "./products/notes/capability.ts";');
  lines.splice(lines.indexOf("  kv,"), 0, "  notes,");
  writeFileSync(list, lines.join("\n"));
  execFileSync(process.execPath, ["scripts/generate.ts"], { cwd: scratch, stdio: "pipe" });
  server = await serve(["--ephemeral"], { SELVEDGE_NOTES_MAX: "1" }, [], join(scratch, "bin/selvedge.js"));
  token = /API token\W+([\w-]{40,})/.exec(server.stdout())![1]!;
  calls = await callsOf(server.ready, token);
});
afterAll(async () => {
  server.process.kill();
  await server.exited;
  rmSync(scratch, { recursive: true });
});

async function call(method: string, path: string, body?: object, bearer = token) {
  const response = await fetch(`${server.ready.api}/accounts/${calls.account}${path}`, {
    method,
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, ...((await response.json()) as { result: never; errors: object[] }) };
}
const ready = async () => (await fetch(server.ready.api.replace("/client/v4", "/readyz"))).status;

it("a new capability is a folder, one line in the list, and what is generated from it", () => {
  const of = (root: string): string[] =>
    [...copied, ...single].flatMap((path) => globSync([path, `${path}/**/*`], { cwd: root })).toSorted();
  const isFile = (path: string): boolean => /\.\w+$/.test(path);
  const changed = of(scratch)
    .filter((path) => isFile(path) && !path.startsWith("src/products/notes/"))
    .filter((path) => readFileSync(join(scratch, path), "utf8") !== readFileSync(path, "utf8"));
  expect(changed).toEqual([
    "docs/reference/configuration.md",
    "docs/reference/errors.md",
    "openapi.json",
    "src/capabilities.ts",
    "src/declarations.ts",
    "src/edge-capabilities.ts",
    "src/platform/storage/migrations/sqlite-schema.json",
  ]);
});

/** Types of the capability. An expected error that does not occur is an error. */
const types = `import type { Config } from "../../platform/config/settings.ts";
import type { Database } from "../../platform/storage/schema.ts";
import type { Change } from "../../platform/storage/storage.ts";
import type { BindingOf } from "../../workers/bindings.ts";

export const setting: Config["notesMax"] = 1;
export const column: Database["notes"]["text"] = "";
export const kind: Change["kind"] = "note";
export const field: BindingOf<"note">["note"] = "";
// @ts-expect-error
export const noSetting: Config["notesMax"] = "1";
// @ts-expect-error
export const noColumn: Database["notes"]["text"] = 1;
// @ts-expect-error
export const noKind: Change["kind"] = "memo";
// @ts-expect-error
export const noField: BindingOf<"note">["note"] = 1;
`;

it("its settings, tables, kinds of change and bindings have types", () => {
  writeFileSync(join(scratch, "src/products/notes/types.ts"), types);
  const config = { extends: "./tsconfig.json", include: ["src/main.ts", "src/products/notes/*.ts"] };
  writeFileSync(join(scratch, "tsconfig.check.json"), JSON.stringify(config));
  const args = ["-p", "tsconfig.check.json"];
  const options = { cwd: scratch, encoding: "utf8" } as const;
  expect(spawnSync(resolve("node_modules/.bin/tsc"), args, options)).toMatchObject({ stdout: "", status: 0 });
});

it("its operation has the checks of all operations, its table and its setting", async () => {
  expect((await call("POST", "/notes", { name: "greeting", text: "hello" }, "wrong")).status).toBe(401);
  expect((await call("POST", "/notes", { name: "greeting" })).status).toBe(400);
  expect((await call("GET", "/notes/no-id")).errors).toMatchObject([{ code: 7003 }]);
  expect(await ready()).toBe(503);
  expect(await call("POST", "/notes", { name: "greeting", text: "hello" })).toMatchObject({ status: 200 });
  expect(await ready()).toBe(200);
  expect(await call("POST", "/notes", { name: "more", text: "hello" })).toMatchObject({
    status: 409,
    errors: [{ code: 1409, message: "Expected at most 1 notes" }],
  });
});

it("its change is in effect at the edge when the API answers, and its binding in scripts", async () => {
  expect((await calls.askHost("any.example", "/note")).body).toBe("hello");
  await calls.deploy("reader", {
    code: "export default { async fetch(request, env) { return new Response(await env.NOTE.text()); } };",
    bindings: [{ type: "note", name: "NOTE", note: "greeting" }],
  });
  expect(await calls.ask("reader")).toMatchObject({ status: 200, body: "hello" });
});

import type { Selectable } from "kysely";
import type { ScriptDeploymentsTable, ScriptVersionsTable } from "../tables.ts";
import type { Read, Write } from "../../../platform/storage/storage.ts";
import type { ModuleMap } from "../../stack-traces/messages.ts";
import type { Module, ModuleKind } from "../runtime-script.ts";
import { sourceMapType } from "./source-maps.ts";
import type { Deployment, VersionShare, ScriptVersion, VersionContent } from "../script.ts";

const toVersion = (row: Selectable<ScriptVersionsTable>): ScriptVersion => ({
  id: row.id,
  scriptId: row.script_id,
  number: row.number,
  codeId: row.code_id,
  content: JSON.parse(row.content) as VersionContent,
  createdOn: row.created_on,
});

const toDeployment = (row: Selectable<ScriptDeploymentsTable>): Deployment => ({
  id: row.id,
  scriptId: row.script_id,
  versions: JSON.parse(row.versions) as VersionShare[],
  source: row.source,
  authorEmail: row.author_email,
  annotations: JSON.parse(row.annotations) as Record<string, string>,
  createdOn: row.created_on,
});

/** A module with its uploaded content type. */
export type StoredModule = Module & { contentType: string };

export async function find(read: Read, id: string): Promise<ScriptVersion | undefined> {
  const row = await read.selectFrom("script_versions").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toVersion(row);
}

export async function findMany(read: Read, ids: readonly string[]): Promise<Map<string, ScriptVersion>> {
  const found = new Map<string, ScriptVersion>();
  for (let at = 0; at < ids.length; at += idsPerQueryMax) {
    const chunk = ids.slice(at, at + idsPerQueryMax);
    const rows = await read.selectFrom("script_versions").selectAll().where("id", "in", chunk).execute();
    for (const row of rows) found.set(row.id, toVersion(row));
  }
  return found;
}
const idsPerQueryMax = 1000;

export async function latest(read: Read, scriptId: string): Promise<ScriptVersion | undefined> {
  const row = await read
    .selectFrom("script_versions")
    .selectAll()
    .where("script_id", "=", scriptId)
    .orderBy("number", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && toVersion(row);
}

/** Newest first. */
export async function list(
  read: Read,
  scriptId: string,
  limit: number,
  offset: number,
): Promise<ScriptVersion[]> {
  const rows = await read
    .selectFrom("script_versions")
    .selectAll()
    .where("script_id", "=", scriptId)
    .orderBy("number", "desc")
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map(toVersion);
}

export async function count(read: Read, scriptId: string): Promise<number> {
  const row = await read
    .selectFrom("script_versions")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("script_id", "=", scriptId)
    .executeTakeFirstOrThrow();
  return row.count;
}

/** Ids of the versions older than the newest `count`. */
export async function idsBeyond(read: Read, scriptId: string, count: number): Promise<string[]> {
  const rows = await read
    .selectFrom("script_versions")
    .select("id")
    .where("script_id", "=", scriptId)
    .orderBy("number", "desc")
    .limit(1000)
    .offset(count)
    .execute();
  return rows.map(({ id }) => id);
}

export async function insert(trx: Write, version: ScriptVersion): Promise<void> {
  await trx
    .insertInto("script_versions")
    .values({
      id: version.id,
      script_id: version.scriptId,
      number: version.number,
      code_id: version.codeId,
      content: JSON.stringify(version.content),
      manifest_id: version.content.assets?.manifest ?? null,
      created_on: version.createdOn,
    })
    .execute();
}

/** Deletes versions, and code that no other version uses. */
export async function remove(trx: Write, scriptId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await trx.deleteFrom("script_versions").where("id", "in", ids).execute();
  await trx
    .deleteFrom("script_modules")
    .where("script_id", "=", scriptId)
    .where("code_id", "not in", (eb) =>
      eb.selectFrom("script_versions").select("code_id").where("script_id", "=", scriptId),
    )
    .execute();
}

const textKinds: ReadonlySet<ModuleKind> = new Set(["js", "cjs", "text", "json"]);

/** Rows with source maps come after the modules, each with the name of its module. */
const mapKind = "map";

export async function insertCode(
  trx: Write,
  scriptId: string,
  codeId: string,
  { modules, sourceMaps }: { modules: readonly StoredModule[]; sourceMaps: readonly ModuleMap[] },
): Promise<void> {
  const maps = sourceMaps.map(({ module, content }) => ({
    name: module,
    kind: mapKind,
    contentType: sourceMapType,
    content,
  }));
  for (const [position, { name, kind, contentType, content }] of [...modules, ...maps].entries()) {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    await trx
      .insertInto("script_modules")
      .values({
        code_id: codeId,
        position,
        script_id: scriptId,
        name,
        kind,
        content_type: contentType,
        content: bytes,
      })
      .execute();
  }
}

/** In the order of the upload. */
export async function modules(read: Read, codeId: string): Promise<StoredModule[]> {
  const rows = await read
    .selectFrom("script_modules")
    .selectAll()
    .where("code_id", "=", codeId)
    .where("kind", "!=", mapKind)
    .orderBy("position")
    .execute();
  return rows.map(({ name, kind, content_type, content }) => ({
    name,
    kind: kind as ModuleKind,
    contentType: content_type,
    content: textKinds.has(kind as ModuleKind) ? Buffer.from(content).toString() : content,
  }));
}

export async function sourceMaps(read: Read, codeId: string): Promise<ModuleMap[]> {
  const rows = await read
    .selectFrom("script_modules")
    .select(["name", "content"])
    .where("code_id", "=", codeId)
    .where("kind", "=", mapKind)
    .orderBy("position")
    .execute();
  return rows.map(({ name, content }) => ({ module: name, content: new Uint8Array(content) }));
}

export async function insertDeployment(trx: Write, deployment: Deployment): Promise<void> {
  await trx
    .insertInto("script_deployments")
    .values({
      id: deployment.id,
      script_id: deployment.scriptId,
      versions: JSON.stringify(deployment.versions),
      source: deployment.source,
      author_email: deployment.authorEmail,
      annotations: JSON.stringify(deployment.annotations),
      created_on: deployment.createdOn,
    })
    .execute();
}

/** Newest first. */
export async function deployments(read: Read, scriptId: string): Promise<Deployment[]> {
  const rows = await read
    .selectFrom("script_deployments")
    .selectAll()
    .where("script_id", "=", scriptId)
    .orderBy("created_on", "desc")
    .orderBy("id")
    .execute();
  return rows.map(toDeployment);
}

export async function removeDeployments(trx: Write, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await trx.deleteFrom("script_deployments").where("id", "in", ids).execute();
}

/** Versions whose stored JSON contains a text: a coarse prefilter for versions that name a script. */
export async function containing(read: Read, ids: readonly string[], text: string): Promise<ScriptVersion[]> {
  const found: ScriptVersion[] = [];
  for (let at = 0; at < ids.length; at += idsPerQueryMax) {
    const rows = await read
      .selectFrom("script_versions")
      .selectAll()
      .where("id", "in", ids.slice(at, at + idsPerQueryMax))
      .where("content", "like", `%${text.replaceAll(/[%_\\]/g, "_")}%`)
      .execute();
    found.push(...rows.map(toVersion));
  }
  return found;
}

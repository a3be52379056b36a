import { z } from "zod";
import { readJson } from "../../control/api/body.ts";
import { operationsFor, type Operation } from "../../control/api/operation.ts";
import { scriptErrorCodes } from "./api-errors.ts";
import { bindingName, secretText } from "../binding-type.ts";
import type { Binding, InheritBinding } from "../bindings.ts";
import {
  authorOf,
  editAccess,
  nameOf,
  readAccess,
  scriptOf,
  type AnyCall,
  type ScriptCollection,
  type ScriptServices,
} from "./api-collection.ts";
import { BindingSchema, bindingResource } from "./resources.ts";
import type { StoredBinding, ScriptVersion } from "./script.ts";
import { scriptErrors } from "./errors.ts";

const { operation } = operationsFor<ScriptServices>(scriptErrorCodes);

const SecretSchema = z.object({ name: z.string(), type: z.literal("secret_text") });
const SecretInputSchema = z.strictObject({
  name: bindingName,
  text: secretText,
  type: z.literal("secret_text").default("secret_text"),
});
const BulkSchema = z.strictObject({
  secrets: z.record(bindingName, SecretInputSchema.extend({ name: bindingName.optional() }).nullable()),
  version_tags: z.record(z.string().max(100), z.string().max(1000)).optional(),
});
const bulkBytesMax = 4 * 1024 * 1024;
/** Clients may percent-encode a name in the path twice; `url_encoded` says so. */
const NameQuery = z.object({ url_encoded: z.enum(["true", "false"]).optional() });

type Secret = { type: "secret_text"; name: string; text: string };

/** Secrets are bindings of the live version; each change makes a new version with the same code. */
export function secretOperations(collection: ScriptCollection): Operation<ScriptServices>[] {
  const path = `${collection.path}/{script_name}`;
  return [
    operation({
      id: `${collection.id}_secret_list`,
      method: "GET",
      path: `${path}/secrets`,
      summary: `List the secrets of a ${collection.noun}, without their values`,
      access: readAccess,
      result: z.array(SecretSchema),
      handle: async (call) => (await secretsOf(collection, call)).map(({ name, type }) => ({ name, type })),
    }),
    operation({
      id: `${collection.id}_secret_put`,
      method: "PUT",
      path: `${path}/secrets`,
      summary: `Set a secret of a ${collection.noun}`,
      access: editAccess,
      body: SecretInputSchema,
      result: SecretSchema,
      async handle(call) {
        const { body } = call;
        await change(collection, call, new Map([[body.name, body]]));
        return { name: body.name, type: body.type };
      },
    }),
    operation({
      id: `${collection.id}_secret_get`,
      method: "GET",
      path: `${path}/secrets/{secret_name}`,
      summary: `Get a secret of a ${collection.noun}, without its value`,
      access: readAccess,
      query: NameQuery,
      result: SecretSchema,
      async handle(call) {
        const { name, type } = await secretOf(collection, call, secretNameOf(call, call.query));
        return { name, type };
      },
    }),
    operation({
      id: `${collection.id}_secret_delete`,
      method: "DELETE",
      path: `${path}/secrets/{secret_name}`,
      summary: `Delete a secret of a ${collection.noun}`,
      access: editAccess,
      query: NameQuery,
      result: z.null(),
      async handle(call) {
        const { name } = await secretOf(collection, call, secretNameOf(call, call.query));
        await change(collection, call, new Map([[name, null]]));
        return null;
      },
    }),
    operation({
      id: `${collection.id}_secrets_patch`,
      method: "PATCH",
      path: `${path}/secrets-bulk`,
      summary: `Set and delete many secrets of a ${collection.noun} at once`,
      access: editAccess,
      body: BulkSchema,
      bodyKind: "own",
      acceptAnyContentType: true,
      result: z.record(z.string(), BindingSchema),
      async handle(call) {
        const { secrets, version_tags } = await readJson(call.incoming, BulkSchema, bulkBytesMax);
        const changes = new Map(
          Object.entries(secrets).map(([name, secret]) => {
            if (secret?.name !== undefined && secret.name !== name)
              throw scriptErrors.invalid(
                `Expected the name ${JSON.stringify(name)} for the secret but received ${JSON.stringify(secret.name)}`,
                `/body/secrets/${name}/name`,
              );
            return [name, secret && { ...secret, name }];
          }),
        );
        const version = await change(collection, call, changes, version_tags);
        const all = version.content.bindings.filter(isSecret);
        return Object.fromEntries(all.map((secret) => [secret.name, bindingResource(secret)]));
      },
    }),
  ];
}

const isSecret = (binding: StoredBinding): binding is StoredBinding & { type: "secret_text" } =>
  binding.type === "secret_text";

async function secretsOf(collection: ScriptCollection, call: AnyCall) {
  const { content } = await call.services.versions.current(scriptOf(collection, call));
  return content.bindings.filter(isSecret);
}

async function secretOf(collection: ScriptCollection, call: AnyCall, name: string) {
  const secret = (await secretsOf(collection, call)).find((each) => each.name === name);
  if (secret === undefined) throw scriptErrors.bindingNotFound(name);
  return secret;
}

function secretNameOf({ params }: AnyCall, query: { url_encoded?: string | undefined }): string {
  const name = params["secret_name"]!;
  if (query.url_encoded !== "true") return name;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Sets secrets; null deletes one. */
async function change(
  collection: ScriptCollection,
  call: AnyCall,
  changes: ReadonlyMap<string, Secret | null>,
  tags: Readonly<Record<string, string>> = {},
): Promise<ScriptVersion> {
  const { version } = await call.services.versions.revise(
    collection.owner(call),
    nameOf(call),
    authorOf(call),
    ({ content }) => {
      for (const { name, type } of content.bindings)
        if (changes.has(name) && type !== "secret_text") throw scriptErrors.bindingIsTaken(name, type);
      const kept = content.bindings
        .filter(({ name }) => !changes.has(name))
        .map(({ name }): InheritBinding => ({ type: "inherit", name }));
      const bindings: (Binding | InheritBinding)[] = [
        ...kept,
        ...[...changes.values()].filter((secret) => secret !== null),
      ];
      return { bindings, annotations: { "workers/triggered_by": "secret", ...tags } };
    },
  );
  return version;
}

import type { Read } from "../../../platform/storage/storage.ts";
import type { Binding, InheritBinding } from "../../bindings.ts";
import type { StoredBinding, ScriptVersion } from "../script.ts";
import type { Sealer } from "./sealing.ts";
import * as store from "./store-versions.ts";
import { scriptErrors } from "../errors.ts";

/** Bindings for storage: inherited ones resolved, secrets encrypted for their script. */
export async function storedBindings(
  read: Read,
  sealer: Sealer,
  scriptId: string,
  base: ScriptVersion | undefined,
  given: readonly (Binding | InheritBinding)[],
  keep: readonly string[],
): Promise<StoredBinding[]> {
  const bindings: StoredBinding[] = [];
  for (const binding of given) {
    if (binding.type === "inherit") bindings.push(await inherited(read, scriptId, base, binding));
    else if (binding.type === "secret_text") {
      const { type, name, text } = binding;
      bindings.push({ type, name, sealed: sealer.seal(text, scriptId) });
    } else bindings.push(binding);
  }
  const names = new Set(bindings.map(({ name }) => name));
  const kept = (base?.content.bindings ?? []).filter(
    ({ type, name }) => keep.includes(type) && !names.has(name),
  );
  return [...bindings, ...kept];
}

/** A stored binding in the form for the script. */
export function openBinding(sealer: Sealer, scriptId: string, binding: StoredBinding): Binding {
  if (binding.type !== "secret_text") return binding;
  return { type: "secret_text", name: binding.name, text: sealer.open(binding.sealed, scriptId) };
}

async function inherited(
  read: Read,
  scriptId: string,
  latest: ScriptVersion | undefined,
  { name, old_name, version_id }: InheritBinding,
): Promise<StoredBinding> {
  const base =
    version_id === undefined || version_id === "latest" ? latest : await store.find(read, version_id);
  if (base === undefined || base.scriptId !== scriptId)
    throw scriptErrors.inherit(
      name,
      version_id === undefined
        ? "the script has no version before this one"
        : `the script has no version "${version_id}"`,
    );
  const wanted = old_name ?? name;
  const binding = base.content.bindings.find((each) => each.name === wanted);
  if (binding === undefined)
    throw scriptErrors.inherit(name, `version ${base.number} has no binding "${wanted}"`);
  return { ...binding, name } as StoredBinding;
}

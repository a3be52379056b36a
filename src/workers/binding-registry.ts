import { z } from "zod";
import type { CellBinding } from "../sandbox/process/script.ts";
import { bindingName, type BindingResources, type BindingType } from "./binding-type.ts";
import type { BindingOf, BindingTypeName, FieldsOf } from "./bindings.ts";
import type { BindingHandler } from "./binding.ts";
import type { RuntimeScript } from "./scripts/runtime-script.ts";

/** A type of bindings, as the capability of the bound resource declares it. */
export interface BindingDeclaration<Name extends BindingTypeName> {
  type: BindingType<FieldsOf<Name>>;
  /** The side in the script's isolate: a module of src/, its function, and the class name that scripts see. */
  isolate?: Pick<CellBinding, "module" | "factory" | "className"> &
    Partial<Pick<CellBinding, "systemEntrypoint">>;
  /** Instead of an object in the isolate: the plain value that scripts see. */
  value?(binding: BindingOf<Name>, script: RuntimeScript): unknown;
  /** Answers the calls of the isolate. Without it, the cell itself or the runtime does. */
  handler?: BindingHandler<Name>;
  /** Whether the account has the resource that a binding names. */
  exists?: (accountId: string, name: string) => Promise<boolean>;
}

/** The declarations of bindings by their type in a script's metadata. */
export type BindingDeclarations = { [Name in BindingTypeName]?: BindingDeclaration<Name> };

/** The types of bindings that scripts can use, complete before the first script is loaded. */
export class BindingRegistry implements BindingResources {
  #declared: BindingDeclarations = {};
  #schemas: ReadonlyMap<string, z.ZodType> = new Map();

  set(declared: BindingDeclarations): void {
    this.#declared = declared;
    this.#schemas = new Map(
      Object.entries(declared).map(([name, { type }]) => [
        name,
        z.strictObject({ type: z.literal(name), name: bindingName, ...type.fields }),
      ]),
    );
  }

  find<Name extends BindingTypeName>(name: Name): BindingDeclarations[Name] {
    return this.#declared[name];
  }

  /** The schemas of bindings in uploads, by the name of their type. */
  get schemas(): ReadonlyMap<string, z.ZodType> {
    return this.#schemas;
  }

  async exists(type: string, accountId: string, name: string): Promise<boolean> {
    const declared = this.#declared[type as BindingTypeName]; // undefined for another text
    return (await declared?.exists?.(accountId, name)) === true;
  }
}

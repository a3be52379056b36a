import type { CellBinding } from "../sandbox/process/script.ts";
import type { BindingResources, BindingTypeName } from "./scripts/versions/bindings.ts";
import type { BindingHandler } from "./binding.ts";

/** A type of bindings, as the capability of the bound resource declares it. */
export interface BindingDeclaration<Type extends BindingTypeName> {
  /** The side in the script's isolate: a module of src/, its function, and the class name that scripts see. */
  isolate: Pick<CellBinding, "module" | "factory" | "className"> &
    Partial<Pick<CellBinding, "systemEntrypoint">>;
  /** Answers the calls of the isolate. Without it, the cell itself or the runtime does. */
  handler?: BindingHandler<Type>;
  /** Whether the account has the resource that a binding names. */
  exists?: (accountId: string, name: string) => Promise<boolean>;
}

/** The declarations of bindings by their type in a script's metadata. */
export type BindingDeclarations = { [Type in BindingTypeName]?: BindingDeclaration<Type> };

/** The types of bindings that scripts can use, complete before the first script is loaded. */
export class BindingRegistry implements BindingResources {
  #declared: BindingDeclarations = {};

  set(declared: BindingDeclarations): void {
    this.#declared = declared;
  }

  find<Type extends BindingTypeName>(type: Type): BindingDeclarations[Type] {
    return this.#declared[type];
  }

  async exists(type: BindingTypeName, accountId: string, name: string): Promise<boolean> {
    return (await this.#declared[type]?.exists?.(accountId, name)) === true;
  }
}

import { z } from "zod";
import { sensitive } from "../control/api/sensitive.ts";

/** Resources that a binding may refer to. */
export interface BindingResources {
  /** Whether the account has the resource of a binding of this type. */
  exists(type: string, accountId: string, name: string): Promise<boolean>;
}

/** The script that a binding belongs to. */
export interface BindingContext {
  accountId: string;
  /** Undefined for a customer's script, to which no binding can refer. */
  scriptName: string | undefined;
  resources: BindingResources;
  hasAssets: boolean;
  /** Classes that the script exports; undefined if the source does not show them. */
  classNames: ReadonlySet<string> | undefined;
}

/** A binding type: its fields, and a check that returns the missing resource, if any. */
export interface BindingType<Fields extends z.ZodRawShape = z.ZodRawShape> {
  fields: Fields;
  check?(binding: z.output<z.ZodObject<Fields>>, context: BindingContext): Promise<string | undefined>;
}

/** Declares a binding type. Capabilities name it in `bindings` of their declaration. */
export const bindingType = <Fields extends z.ZodRawShape>(type: BindingType<Fields>): BindingType<Fields> =>
  type;

/** A text that a script sees, in characters. The public service has the same number of bytes as its limit. */
export const secretText = sensitive(z.string().max(5 * 1024));
/** An id from outside, in a form that may be looked up. */
export const idText = z.string().regex(/^[\w-]{1,64}$/);
/** The name of a script that a binding refers to. */
export const scriptName = z.string().min(1).max(255);
/** The name of a binding. `__proto__` cannot be set as a property. */
export const bindingName = z.string().regex(/^(?!__proto__$)[A-Za-z_$][\w$]{0,63}$/);

/** The missing script, if a binding refers to one. */
export async function missingScript(
  name: string,
  { accountId, scriptName: own, resources }: BindingContext,
): Promise<string | undefined> {
  if (name === own || (await resources.exists("service", accountId, name))) return undefined;
  return `the script "${name}", which does not exist on this account`;
}

import type { z } from "zod";
import type { BindingTypesOf } from "../declaration.ts";
import type { declarations } from "../declarations.ts";
import type { BindingType } from "./binding-type.ts";

type Types = BindingTypesOf<typeof declarations>;

/** The types of bindings, as the capabilities declare them. */
export type BindingTypeName = keyof Types;
/** The fields of a type, as schemas. */
export type FieldsOf<Name extends BindingTypeName> =
  Types[Name] extends BindingType<infer Fields> ? Fields : never;
/** A binding of one type, in the form of the API. */
export type BindingOf<Name extends BindingTypeName> = { type: Name; name: string } & z.output<
  z.ZodObject<FieldsOf<Name>>
>;
/** A binding in the form of the API, with secrets in clear text. */
export type Binding = { [Name in BindingTypeName]: BindingOf<Name> }[BindingTypeName];

/** In an upload: takes the binding of an earlier version. */
export interface InheritBinding {
  type: "inherit";
  name: string;
  old_name?: string | undefined;
  version_id?: string | undefined;
}

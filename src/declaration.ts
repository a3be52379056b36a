import type { Migration } from "kysely/migration";
import type { ConfigOf, Setting } from "./platform/config/setting.ts";

/** A table by its columns. They exist for the compiler only. */
export interface DeclaredTable<Columns = object> {
  readonly columns?: Columns;
}

/** Declares the columns of a table, as Kysely reads and writes them. */
export const table = <Columns extends object>(): DeclaredTable<Columns> => ({});

/** A type of bindings, by its fields and its check, which a capability contributes. They exist for the compiler only. */
export interface DeclaredBinding<Type = object> {
  readonly type?: Type;
}

/** Declares a type of bindings, as the type of a value that `bindingType` made. */
export const binding = <Type extends object>(): DeclaredBinding<Type> => ({});

/** The databases that a migration can run on. */
export type DatabaseEngine = "sqlite" | "postgres";

/** Loads a migration, which may differ between the engines. Called only for a database that needs it. */
export type LoadMigration = () => Promise<Migration | ((engine: DatabaseEngine) => Migration)>;

/**
 * The static part of a capability. Commands that open a database or read the configuration need it without the
 * capability, so its module loads nothing but the forms of settings.
 */
export interface Declaration<
  Settings extends Record<string, Setting> = Record<string, Setting>,
  Tables extends Record<string, DeclaredTable> = Record<string, DeclaredTable>,
  Kind extends string = string,
  Bindings extends Record<string, DeclaredBinding> = Record<string, DeclaredBinding>,
> {
  readonly settings: Settings;
  /** Checks settings that depend on each other. Returns an error message, or undefined if there is no error. */
  checkSettings?(config: ConfigOf<Settings>): string | undefined;
  readonly tables: Tables;
  /** By their names, such as 0021-d1. The number orders them among the migrations of all capabilities. */
  readonly migrations: Readonly<Record<string, LoadMigration>>;
  /** The kinds of its committed changes, for `Storage.write` and its listeners. */
  readonly changes: readonly Kind[];
  /** The types of bindings for scripts that it contributes. */
  readonly bindings: Bindings;
}

/** Has no members, so that an intersection with it adds none. */
// oxlint-disable-next-line typescript/no-generated-empty-object-type
type None = Record<never, never>;
/** A declaration that declares nothing. */
export type EmptyDeclaration = Declaration<None, None, never, None>;

/** Declares the static part of a capability: the exported `declaration` of the file declaration.ts in its folder. */
export function declare<
  const Settings extends Record<string, Setting> = None,
  Tables extends Record<string, DeclaredTable> = None,
  const Kind extends string = never,
  Bindings extends Record<string, DeclaredBinding> = None,
>(
  declared: Partial<Declaration<Settings, Tables, Kind, Bindings>>,
): Declaration<Settings, Tables, Kind, Bindings> {
  const { settings, tables, bindings, migrations = {}, changes = [], checkSettings } = declared;
  return {
    settings: settings ?? ({} as Settings), // absent: the type is then the default
    tables: tables ?? ({} as Tables),
    migrations,
    changes,
    bindings: bindings ?? ({} as Bindings),
    ...(checkSettings === undefined ? {} : { checkSettings }),
  };
}

/** The intersection of the members of a union. */
type All<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer I) => void
  ? I
  : never;

/** The settings of several declarations. */
export type SettingsOf<D extends readonly Declaration[]> = All<D[number]["settings"]>;
/** The tables of several declarations, by name, with their columns. */
export type TablesOf<D extends readonly Declaration[]> = ColumnsOf<All<D[number]["tables"]>>;
type ColumnsOf<Tables> = {
  [Name in keyof Tables]: Tables[Name] extends DeclaredTable<infer Columns> ? Columns : never;
};
/** The types of bindings of several declarations, by name. */
export type BindingTypesOf<D extends readonly Declaration[]> = TypesOf<All<D[number]["bindings"]>>;
type TypesOf<Bindings> = {
  [Name in keyof Bindings]: Bindings[Name] extends DeclaredBinding<infer Type> ? Type : never;
};
/** The kinds of changes of several declarations. */
export type ChangeKindOf<D extends readonly Declaration[]> = D[number]["changes"][number];

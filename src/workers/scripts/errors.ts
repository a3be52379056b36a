import { defineErrors, inputErrors, type DomainError } from "../../platform/domain-error.ts";
import type { ScriptOwner } from "./script.ts";

export const scriptErrors = defineErrors("scripts", {
  /** Callers use `scriptNotFound`, which picks one of these two. */
  notFound: (name: string) => `This Worker does not exist on your account: "${name}"`,
  notInNamespace: (name: string, namespace: string) =>
    `The script "${name}" does not exist in the dispatch namespace "${namespace}"`,
  invalid: (message: string, pointer?: string) => ({ message: message, pointer }),
  unsupportedBinding: (binding: string, typeName: string, expected: string, pointer: string) => ({
    message: `The binding ${binding} has the type "${typeName}", which is not supported here. Expected ${expected}`,
    pointer,
  }),
  twoBindings: (name: string, pointer: string) => ({
    message: `Two bindings have the name "${name}"`,
    pointer,
  }),
  missingResource: (binding: string, type: string, resource: string) =>
    `The binding "${binding}" of type ${type} needs ${resource}`,
  /** `what` is the part of the upload that needs the product, such as "migrations are {…}". */
  absentProduct: (product: string, what: string, pointer: string) => {
    const reason = inputErrors.absentProduct(product);
    return { message: `${reason.message}: ${what}`, pointer, reasons: [reason] };
  },
  rename: (name: string) => ({
    message: `The script "${name}" cannot be renamed: upload it under its new name`,
    pointer: "/body/name",
  }),
  exists: (name: string) => `A script with the name "${name}" exists already`,
  versionIsLive: () => "A version that serves requests cannot be deleted",
  tooLarge: (limitBytes: number) =>
    `The script is too large. Expected at most ${limitBytes} bytes of modules`,
  name: (name: string, expected: string) =>
    `Expected a script name of ${expected} but received ${JSON.stringify(name)}`,
  inherit: (name: string, why: string) => `The binding "${name}" cannot be inherited: ${why}`,
  versionNotFound: (id: string) => `The script has no version "${id}"`,
  noVersions: () => "The script has no versions",
  deploymentNotFound: (id: string) => `The script has no deployment "${id}"`,
  percentages: (sum: number) => ({
    message: `Expected percentages that add up to 100 but received ${sum}`,
    pointer: "/body/versions",
  }),
  deploymentIsLive: () => "The latest deployment cannot be deleted: it serves requests",
  latestNotDeployed: () =>
    "The latest version of the script is not deployed to all requests, so its settings cannot be changed in place. Deploy it first, or upload a new version",
  bindingNotFound: (name: string) => `Binding not found: there is no secret "${name}"`,
  bindingIsTaken: (name: string, type: string) =>
    `Binding name "${name}" already in use: a binding of type ${type} has it. Give the secret another name, or remove that binding first`,
  tagNotFound: (tag: string) => `The script has no tag "${tag}"`,
  tooManyTags: (max: number) => `Expected at most ${max} tags for a script`,
  tagFilter: (text: string) => ({
    message: `Expected tags as <tag>:yes or <tag>:no, separated by commas, but received ${JSON.stringify(text)}`,
    pointer: "/query/tags",
  }),
  referenced: (name: string, by: readonly string[]) =>
    `The script "${name}" is used by ${by.slice(0, 5).join(", ")}. Delete it with force=true, or remove the bindings first`,
});

/** The error for a missing script of an account or of a dispatch namespace. */
export const scriptNotFound = ({ namespace }: ScriptOwner, name: string): DomainError =>
  namespace === undefined ? scriptErrors.notFound(name) : scriptErrors.notInNamespace(name, namespace.name);

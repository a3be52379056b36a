import type { Script } from "../../scripts/script.ts";
import type { Scripts } from "../../scripts/scripts.ts";
import type { ObjectChange } from "../../scripts/versions/object-classes.ts";
import { objectErrors } from "../../scripts/versions/object-errors.ts";
import type { ExportFinding, ObjectExport, Reconciliation } from "../../scripts/versions/object-exports.ts";
import * as versionStore from "../../scripts/versions/store-versions.ts";
import type { ObjectClasses } from "./classes.ts";
import type { ObjectNamespace } from "../namespace.ts";
import * as store from "../store.ts";

type ExportIn<State> = Extract<ObjectExport, { state: State }>;
type Finding = Omit<ExportFinding, "class">;

/**
 * Reconciles the classes that an upload declares in `exports` with the namespaces that exist. The rules and the
 * scenarios are those of the public documentation. A transfer is pending while the newest version of its target expects
 * it; the upload of its source commits it.
 */
export class Reconciler {
  readonly #change: ObjectChange;
  readonly #classes: ObjectClasses;
  readonly #scripts: Scripts;
  readonly #errors: ExportFinding[] = [];
  readonly #result: Reconciliation = {
    created: [],
    updated: [],
    deleted: [],
    renamed: [],
    transferred: [],
    transfer_pending: [],
    warnings: [],
    info: [],
    removable_entries: [],
  };
  /** The sources of expected transfers, by class. */
  readonly transfers = new Map<string, string>();

  constructor(change: ObjectChange, classes: ObjectClasses, scripts: Scripts) {
    this.#change = change;
    this.#classes = classes;
    this.#scripts = scripts;
  }

  /** Throws one error with a finding for each class that cannot be as declared. */
  async run(): Promise<Reconciliation> {
    const { exports = new Map<string, ObjectExport>() } = this.#change;
    const before = new Set(this.#classes.names);
    for (const [name, entry] of exports) if (entry.state === "deleted") await this.#delete(name);
    for (const [name, entry] of exports) if (entry.state === "renamed") await this.#rename(name, entry);
    for (const [name, entry] of exports) {
      if (entry.state === "transferred") await this.#transfer(name, entry);
      else if (entry.state === "expecting-transfer") await this.#expect(name, entry);
      else if (entry.state === undefined || entry.state === "created") this.#create(name, entry.storage);
    }
    for (const name of before) if (!exports.has(name)) this.#reportUndeclared(name);
    if (this.#errors.length > 0) throw objectErrors.exports(this.#errors.map(textOf), this.#errors);
    return this.#result;
  }

  #isInCode(name: string): boolean {
    return this.#change.exportNames?.has(name) !== false;
  }

  #fail(name: string, finding: Finding): void {
    this.#errors.push({ class: name, ...finding });
  }

  #create(name: string, storage: "sqlite" | "legacy-kv"): void {
    const existing = this.#classes.byName(name);
    if (!this.#isInCode(name)) {
      this.#fail(name, existing === undefined ? nonexistent(name) : notInCode(name));
    } else if (existing === undefined && storage === "legacy-kv")
      this.#fail(name, {
        scenario: "invalid_export",
        message: `Class '${name}' is new, and new namespaces cannot use the storage "legacy-kv".`,
        suggestion: 'use "storage": "sqlite".',
      });
    else if (existing === undefined) {
      this.#classes.create(name, true);
      this.#result.created.push(name);
    } else this.#checkStorage(name, existing, storage);
  }

  #checkStorage(name: string, { isSqlite, id }: ObjectNamespace, storage: "sqlite" | "legacy-kv"): boolean {
    if (isSqlite === (storage === "sqlite")) return true;
    this.#fail(name, {
      scenario: "storage_type_mismatch",
      message: `Class '${name}' has a namespace with the storage "${isSqlite ? "sqlite" : "legacy-kv"}", which cannot be changed.`,
      suggestion: "declare the storage that the namespace has.",
      namespace_id: id,
    });
    return false;
  }

  async #delete(name: string): Promise<void> {
    const existing = this.#classes.byName(name);
    if (existing === undefined) {
      await this.#noteStale(name, "deleted");
      return;
    }
    const referencing = await this.#referencing(existing.id);
    if (this.#change.exportNames?.has(name) === true)
      this.#fail(name, {
        scenario: "tombstone_delete_class_still_in_code",
        message: `Class '${name}' cannot be deleted while the script exports it.`,
        suggestion: "remove the class from the code.",
        namespace_id: existing.id,
      });
    else if (referencing.length > 0)
      this.#fail(name, {
        scenario: "tombstone_delete_blocked_by_external_bindings",
        message: `Class '${name}' cannot be deleted while other scripts bind to it.`,
        suggestion: "deploy those scripts without the binding first.",
        namespace_id: existing.id,
        referencing_scripts: referencing,
      });
    else {
      this.#classes.delete(name);
      this.#result.deleted.push(name);
    }
  }

  async #rename(name: string, { renamed_to: to }: ExportIn<"renamed">): Promise<void> {
    const target = this.#change.exports!.get(to);
    const existing = this.#classes.byName(name);
    if (target === undefined || (target.state ?? "created") !== "created" || to === name)
      this.#fail(name, {
        scenario: "invalid_export",
        message: `Class '${name}' is renamed to '${to}', which is not another live class of exports.`,
        suggestion: `add a live entry for '${to}'.`,
      });
    else if (existing === undefined) await this.#noteStale(name, "renamed");
    else if (this.#classes.byName(to) !== undefined)
      this.#fail(name, {
        scenario: "tombstone_renamed_to_occupied",
        message: `Class '${name}' cannot be renamed to '${to}', which has a namespace already.`,
        suggestion: `delete '${to}' in an earlier deployment.`,
        namespace_id: existing.id,
      });
    else {
      this.#classes.rename(name, to);
      this.#result.renamed.push({ from: name, to });
      this.#noteStillInCode(name, "renamed");
    }
  }

  async #expect(name: string, entry: ExportIn<"expecting-transfer">): Promise<void> {
    const { transfer_from: from, storage } = entry;
    const { owner, trx, transfers } = this.#change;
    const own = this.#classes.byName(name);
    if (own !== undefined) {
      if (transfers[name] === from)
        this.#result.info.push({
          class: name,
          scenario: "transfer_receive_already_applied",
          message: `Class '${name}' was transferred from '${from}'. Its entry can become a live one.`,
        });
      else
        this.#fail(
          name,
          transferFault(
            "phase_one_transfer_target_class_provisioned",
            "the script has a namespace for the class already",
          ),
        );
      if (transfers[name] === from) this.transfers.set(name, from);
      return;
    }
    if (!this.#isInCode(name)) {
      this.#fail(name, nonexistent(name));
      return;
    }
    if (owner.namespace !== undefined) {
      this.#fail(
        name,
        transferFault(
          "phase_one_transfer_target_in_dispatch_namespace",
          "the script is in a dispatch namespace",
        ),
      );
      return;
    }
    const source = this.#scripts.find(owner, from);
    if (source === undefined) {
      this.#fail(
        name,
        transferFault("phase_one_transfer_source_missing", `the account has no script '${from}'`),
      );
      return;
    }
    const found = (await store.ofScript(trx, source.id)).find(({ className }) => className === name);
    if (found === undefined) {
      this.#fail(
        name,
        transferFault(
          "phase_one_transfer_source_namespace_missing",
          `the script '${from}' has no such class`,
        ),
      );
      return;
    }
    if (!this.#checkStorage(name, found, storage)) return;
    this.transfers.set(name, from);
    this.#result.transfer_pending.push({ class: name, from });
  }

  async #transfer(name: string, { transferred_to: to }: ExportIn<"transferred">): Promise<void> {
    const { owner, trx, script } = this.#change;
    const existing = this.#classes.byName(name);
    if (existing === undefined) {
      await this.#noteStale(name, "transferred");
      return;
    }
    if (owner.namespace !== undefined) {
      this.#fail(
        name,
        transferFault("transferred_source_in_dispatch_namespace", "the script is in a dispatch namespace"),
      );
      return;
    }
    const target = this.#scripts.find(owner, to);
    const live = target?.live[0] && (await versionStore.find(trx, target.live[0].versionId));
    const pending = live?.content.objectTransfers?.[name];
    if (target === undefined)
      this.#fail(name, transferFault("transferred_target_missing", `the account has no script '${to}'`));
    else if (pending === undefined)
      this.#fail(
        name,
        transferFault("transferred_pending_not_found", `the script '${to}' does not expect it`),
      );
    else if (pending !== script.name)
      this.#fail(
        name,
        transferFault("transferred_target_mismatch", `the script '${to}' expects it from '${pending}'`),
      );
    else {
      this.#classes.transferTo(name, target.id);
      this.#result.transferred.push({ class: name, phase: "committed", to });
      this.#noteStillInCode(name, "transferred");
    }
  }

  #noteStillInCode(name: string, state: string): void {
    if (this.#change.exportNames?.has(name) !== true) return;
    this.#result.info.push({
      class: name,
      scenario: "tombstone_class_still_in_code",
      message: `Tombstone of type '${state}' applied. Class '${name}' is still exported in code; this is the supported pattern for zero-downtime rename rollouts.`,
    });
  }

  async #noteStale(name: string, state: string): Promise<void> {
    const referencing = state === "deleted" ? [] : await this.#referencingByName(name);
    this.#result.info.push({
      class: name,
      scenario: "stale_tombstone",
      message: `Tombstone of type '${state}' for class '${name}' has no effect (no namespace exists with this class name).${referencing.length === 0 ? " Safe to remove from `exports`." : ""}`,
      ...(referencing.length > 0 && { referencing_scripts: referencing }),
    });
    if (referencing.length === 0) this.#result.removable_entries.push(name);
  }

  #reportUndeclared(name: string): void {
    const { id } = this.#classes.byName(name)!;
    const isInCode = this.#isInCode(name);
    this.#fail(name, {
      scenario: isInCode ? "provisioned_class_missing_from_config" : "orphaned_provisioned_namespace",
      message: isInCode
        ? `class '${name}' has a provisioned Durable Object namespace (${id}) but is not declared in \`exports\`. Every provisioned class must be declared in \`exports\` (live or tombstone); silent drift is not permitted.`
        : `A namespace exists for '${name}' but no \`exports\` entry declares it.`,
      suggestion: `add an \`exports\` entry for '${name}', or add a \`deleted\` tombstone to remove the namespace.`,
      namespace_id: id,
    });
  }

  async #referencing(namespaceId: string): Promise<string[]> {
    return this.#bindingTo((binding) => binding["namespace_id"] === namespaceId);
  }

  async #referencingByName(className: string): Promise<string[]> {
    const { script } = this.#change;
    return this.#bindingTo(
      (binding) => binding["script_name"] === script.name && binding["class_name"] === className,
    );
  }

  /** Names of other scripts of the owner whose live versions have such a binding. */
  async #bindingTo(matches: (binding: Record<string, unknown>) => boolean): Promise<string[]> {
    const { owner, trx, script } = this.#change;
    const others: Script[] = this.#scripts.list(owner).filter(({ id }) => id !== script.id);
    const versions = await versionStore.findMany(
      trx,
      others.flatMap(({ live }) => live.map(({ versionId }) => versionId)),
    );
    const binds = ({ live }: Script): boolean =>
      live.some(({ versionId }) =>
        versions
          .get(versionId)
          ?.content.bindings.some(
            (binding) => binding.type === "durable_object_namespace" && matches(binding),
          ),
      );
    return others.filter(binds).map(({ name }) => name);
  }
}

const textOf = ({ scenario, class: name, message, suggestion }: ExportFinding): string =>
  `[${scenario}] class '${name}': ${message}${suggestion === undefined ? "" : ` (${suggestion})`}`;

const notInCode = (name: string): Finding => ({
  scenario: "config_export_not_in_code",
  message: `Class '${name}' is declared as live, but the script does not export it.`,
  suggestion: "add the class to the code, or replace the entry with a tombstone.",
});

const nonexistent = (name: string): Finding => ({
  scenario: "config_references_nonexistent_class",
  message: `Class '${name}' is declared as live, but the script does not export it and it has no namespace.`,
  suggestion: "remove the entry, or add the class to the code.",
});

const transferFault = (scenario: string, why: string): Finding => ({
  scenario,
  message: `The transfer is not possible: ${why}.`,
});

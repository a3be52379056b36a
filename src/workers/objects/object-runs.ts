import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LRUCache } from "lru-cache";
import { visitorHeaders } from "../../edge/http/headers.ts";
import type { RunOptions } from "../../sandbox/cell.ts";
import { Refusal, type CellFault } from "../../sandbox/errors.ts";
import type { ObjectTarget } from "../../sandbox/objects/object-cells-options.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import type { CellScript } from "../../sandbox/process/script.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { NearCell } from "../../sandbox/near-cell.ts";
import type { ObjectGrant, ObjectRoute } from "../../sandbox/protocol.ts";
import { localCallsOf, lotOf } from "./local-calls.ts";
import { bodyOf, nestedRequest } from "../runtime/cell-requests.ts";
import { refusals } from "../runtime/errors.ts";
import type { ObjectBinding, ObjectCall, ObjectGate } from "../runtime/object-gate.ts";
import type { RunContext } from "../runtime/run-context.ts";
import { beginRun, runTraced } from "../runtime/run-span.ts";
import type { Run } from "../runtime/run.ts";
import type { Outcome, TailEvent } from "../tail/event.ts";
import { requestEvent } from "../tail/run-event.ts";
import type { RunTrace } from "../tail/run-trace.ts";
import { ActingObjects, targetOf, type LastDispatches, type ObjectRunServices } from "./acting.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { diceOf, isIdOf } from "./ids.ts";
import type { ObjectNamespace } from "./namespace.ts";
import { groupOf } from "./namespaces.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

/** An object that is called, with the run that the call begins. */
interface Resolved {
  target: ObjectTarget;
  context: RunContext;
}

/** Calls objects for scripts, after checking that the script may. */
export class ObjectRuns implements ObjectGate {
  readonly #services: ObjectRunServices;
  readonly #customers: LastDispatches = new LRUCache(entriesMax(10_000));
  readonly acting: ActingObjects;

  constructor(services: ObjectRunServices) {
    this.#services = services;
    this.acting = new ActingObjects(services, this.#customers);
  }

  async fetch(
    call: ObjectCall,
    { url, request, response }: { url: URL; request: IncomingMessage; response: ServerResponse },
  ): Promise<void> {
    const resolved = await this.#resolve(call);
    const body = bodyOf(request, this.#services.runtime.bodyBytesMax);
    await this.#run(resolved, nestedRequest(entryOf(resolved.context), url, request, body), {
      response,
      headers: (raw) => [...raw],
    });
  }

  async upgrade(
    call: ObjectCall,
    { url, request, socket, head }: { url: URL; request: IncomingMessage; socket: Socket; head: Buffer },
  ): Promise<void> {
    const resolved = await this.#resolve(call);
    await this.#run(resolved, nestedRequest(entryOf(resolved.context), url, request, null), {
      socket,
      head,
      headers: (raw) => visitorHeaders(raw, ""),
      idleTimeoutMs: this.#services.runtime.idleTimeoutMs,
    });
  }

  async #run(resolved: Resolved, request: CellRequest, answer: RunOptions["answer"]): Promise<void> {
    if (resolved.context.span === undefined) return this.#runIn(resolved, request, answer);
    return runTraced(resolved.context, "object", request, async (traced) =>
      this.#runIn(resolved, traced, answer),
    );
  }

  async #runIn(
    { target, context }: Resolved,
    received: CellRequest,
    answer: RunOptions["answer"],
  ): Promise<void> {
    const { runtime, cells } = this.#services;
    const calls = localCallsOf(this.#services, context);
    const request = { ...received, metadata: { ...received.metadata, ...(calls && { calls }) } };
    const trace = this.#traceOf(target, context, () => requestEvent(request));
    if (trace === undefined) {
      await cells.run(target, { request, answer, hooks: () => runtime.objectHooks(context) });
      return;
    }
    const metadata = { ...request.metadata, isTraced: true };
    await trace.follow(answer, async (to) => {
      let last: Run | undefined;
      const hooks = (): Run => (last = runtime.objectHooks(context, trace));
      try {
        await cells.run(target, { request: { ...request, metadata }, answer: to, hooks });
      } catch (error) {
        throw await runtime.explained(error, { context, last });
      }
    });
  }

  /** Undefined without a live log of the object's script. */
  #traceOf(
    { object }: ObjectTarget,
    context: RunContext,
    event: () => TailEvent["event"],
  ): RunTrace | undefined {
    return this.#services.runtime.traceOf(context, event, object.className, object.id);
  }

  async route(call: ObjectCall, slot: number | undefined, method: string): Promise<ObjectRoute> {
    const { runtime, cells } = this.#services;
    const { target, context } = await this.#resolve(call);
    const span = context.span && beginRun(context, "object").set("selvedge.method", method);
    const trace = this.#traceOf(target, context, () => ({ rpcMethod: method }));
    const watcher = (trace !== undefined || span?.isSampled === true) && {
      isTraced: trace !== undefined,
      end: (fault: CellFault | undefined): void => {
        if (fault !== undefined) span?.fail(fault.kind);
        span?.end();
        trace?.end(fault === undefined ? "ok" : outcomeOf(fault), undefined, fault !== undefined);
      },
    };
    const visitor = context.root.edgeRequest?.cf();
    const calls = localCallsOf(this.#services, context);
    const more = calls === undefined ? {} : { calls, ...(visitor && { visitor }) };
    return cells.route(target, runtime.objectHooks(context, trace), slot, {
      ...more,
      watcher: watcher || undefined,
    });
  }

  async grant(call: ObjectCall, slot: number | undefined): Promise<ObjectGrant | undefined> {
    const { target, context } = await this.#resolve(call);
    // A live log and a trace show each call.
    if (this.#services.isWatched(context.caller) || context.span?.isSampled === true) return undefined;
    const granted = await this.#services.cells.grant(target, slot);
    return granted && { ...granted, lot: lotOf(context.limits) };
  }

  near(context: RunContext): NearCell | undefined {
    const { cells, namespaces, scripts, runtime } = this.#services;
    const calls = localCallsOf(this.#services, context);
    if (calls === undefined) return undefined;
    const found = context.loaded.script.bindings.find(({ type }) => type === "durable_object_namespace");
    const namespace = namespaces.find((found as ObjectBinding | undefined)?.namespace_id ?? "");
    const script = namespace?.scriptId == null ? undefined : scripts.findById(namespace.scriptId);
    // Cells of objects are shared by the scripts of an account, not by those of its customers.
    if (script === undefined || groupOf(script) !== context.caller.accountId) return undefined;
    return cells.near.cellFor(namespace!.id, runtime.cellScript(context), calls);
  }

  async hooks(call: ObjectCall): Promise<RunHooks> {
    const { context } = await this.#resolve(call);
    return this.#services.runtime.objectHooks(context);
  }

  /** Ends an object and deletes its data. Its code does not run. */
  async remove(
    { id: namespace, accountId, scriptId, className, isSqlite }: ObjectNamespace,
    id: string,
  ): Promise<void> {
    const script = this.#services.scripts.findById(scriptId!);
    if (script === undefined) throw objectErrors.namespaceNotFound(namespace);
    const object = { id, namespace, className, isSqlite, serial: 0, delayMs: 0 };
    await this.#services.cells.remove({
      group: groupOf(script),
      object,
      script: { ...noScript, owner: `namespace ${namespace}`, accountId },
    });
  }

  async #resolve(call: ObjectCall): Promise<Resolved> {
    const { reference } = call;
    const namespace = this.#namespaceOf(call);
    const script =
      namespace.scriptId === null ? undefined : this.#services.scripts.findById(namespace.scriptId);
    const owner = script && this.#services.ownerOf(script);
    const live = script && owner && this.#services.scripts.live(owner, script.name, diceOf(reference.id));
    if (live === undefined) throw refusals.notFound();
    if (call.isCustomer) this.#customers.set(namespace.id, { limits: call.limits, outbound: call.outbound });
    const context = await this.#services.runtime.objectScript(owner!, live, call);
    return { target: targetOf(this.#services, { namespace, script: script!, context }, reference), context };
  }

  /** The namespace of a call. Throws a Refusal if the caller may not use it, or if the object's id is not of it. */
  #namespaceOf({ caller, isCustomer, binding, reference }: ObjectCall): ObjectNamespace {
    const namespace = this.#services.namespaces.find(binding.namespace_id ?? "");
    const isAllowed =
      namespace?.accountId === caller.accountId && (!isCustomer || namespace.scriptId === caller.scriptId);
    if (namespace === undefined || !isAllowed)
      throw new Refusal("The namespace of Durable Objects does not exist any more.");
    if (!isIdOf(namespace.id, reference))
      throw new Refusal("Durable Object ID is not valid for this namespace.");
    return namespace;
  }
}

/** For a cell that starts without running a script. */
const noScript: Omit<CellScript, "owner" | "accountId"> = {
  id: "",
  profile: "script",
  mainModule: "",
  modules: [],
  compatibilityDate: "",
  compatibilityFlags: [],
  cpuMs: 1000,
  memoryBytes: 0,
  env: {},
};

const outcomeOf = ({ mayBeCulprit, kind }: CellFault): Outcome => {
  if (!mayBeCulprit) return "unknown";
  if (kind === "cpu") return "exceededCpu";
  return kind === "memory" ? "exceededMemory" : "unknown";
};

const entryOf = (context: RunContext) =>
  ({ context, entrypoint: undefined, params: undefined, seesCf: true }) as const;

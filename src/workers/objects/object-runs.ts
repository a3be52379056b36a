import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LRUCache } from "lru-cache";
import { visitorHeaders } from "../../edge/http/headers.ts";
import type { RunOptions } from "../../sandbox/cell.ts";
import { ObjectRefusal, Refusal, type CellFault } from "../../sandbox/errors.ts";
import type { ObjectCells, ObjectTarget } from "../../sandbox/objects/object-cells.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { ActingObject } from "../../sandbox/objects/standing.ts";
import type { ObjectRoute } from "../../sandbox/protocol.ts";
import { withoutVisitor } from "../runtime/run-root.ts";
import { bodyOf, nestedRequest } from "../runtime/cell-requests.ts";
import { refusals } from "../runtime/errors.ts";
import type { ObjectCall, ObjectGate } from "../runtime/object-gate.ts";
import type { RunContext } from "../runtime/run-context.ts";
import type { Run } from "../runtime/run.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { ScriptOwner, Script } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { Outcome, TailEvent } from "../tail/event.ts";
import { requestEvent } from "../tail/run-event.ts";
import type { RunTrace } from "../tail/run-trace.ts";
import { diceOf, isIdOf } from "./ids.ts";
import type { ObjectNamespace } from "./namespace.ts";
import { groupOf, type ObjectNamespaces } from "./namespaces.ts";

import { standingRun } from "./standing-run.ts";

interface Services {
  namespaces: ObjectNamespaces;
  scripts: Scripts;
  runtime: Runtime;
  cells: ObjectCells;
  /** The owner of a script: its account or its dispatch namespace. */
  ownerOf: (script: Script) => ScriptOwner | undefined;
}

/** An object that is called, with the run that the call begins. */
interface Resolved {
  target: ObjectTarget;
  context: RunContext;
}

/** Calls objects for scripts, after checking that the script may. */
export class ObjectRuns implements ObjectGate {
  readonly #services: Services;
  /** The last dispatch to a customer, by namespace: its objects act with the same limits and outbound script. */
  readonly #customers = new LRUCache<string, Pick<ObjectCall, "limits" | "outbound">>({ max: 10_000 });

  constructor(services: Services) {
    this.#services = services;
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

  async #run(
    { target, context }: Resolved,
    request: CellRequest,
    answer: RunOptions["answer"],
  ): Promise<void> {
    const { runtime, cells } = this.#services;
    const trace = this.#traceOf(target, context, () => requestEvent(request));
    if (trace === undefined) {
      await cells.run(target, { request, answer, hooks: () => runtime.hooksOf(context) });
      return;
    }
    const metadata = { ...request.metadata, isTraced: true };
    await trace.follow(answer, async (to) => {
      let last: Run | undefined;
      const hooks = (): Run => (last = runtime.hooksOf(context, trace));
      try {
        await cells.run(target, { request: { ...request, metadata }, answer: to, hooks });
      } catch (error) {
        throw await runtime.explained(error, { context, last });
      }
    });
  }

  /** Undefined unless someone watches the object's script. */
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
    const trace = this.#traceOf(target, context, () => ({ rpcMethod: method }));
    const watcher = trace && {
      end: (fault: CellFault | undefined): void =>
        trace.end(fault === undefined ? "ok" : outcomeOf(fault), undefined, fault !== undefined),
    };
    return cells.route(target, runtime.hooksOf(context, trace), slot, watcher);
  }

  /** The hooks of a run that no request began: of a constructor, or of a message of a WebSocket. */
  async standing({ namespace: namespaceId, id }: ActingObject): Promise<RunHooks | undefined> {
    const { scripts, runtime, namespaces } = this.#services;
    const namespace = namespaces.find(namespaceId);
    const script = namespace?.scriptId == null ? undefined : scripts.findById(namespace.scriptId);
    const owner = script && this.#services.ownerOf(script);
    const live = script && owner && scripts.live(owner, script.name, diceOf(id));
    if (live === undefined) return undefined;
    const isCustomer = owner!.namespace !== undefined;
    const last = this.#customers.get(namespaceId);
    // Without the outbound script of a dispatch a customer's object may not act.
    if (isCustomer && last === undefined) return undefined;
    const call = {
      root: withoutVisitor(),
      depth: 0,
      isCustomer,
      limits: last?.limits,
      outbound: last?.outbound,
    };
    const context = await runtime.objectScript(owner!, live, call);
    return standingRun(runtime.hooksOf(context), (event) =>
      runtime.traceOf(context, event, namespace!.className, id),
    );
  }

  async #resolve(call: ObjectCall): Promise<Resolved> {
    const { reference } = call;
    const namespace = this.#namespaceOf(call);
    const script =
      namespace.scriptId === null ? undefined : this.#services.scripts.findById(namespace.scriptId);
    const owner = script && this.#services.ownerOf(script);
    const live = script && owner && this.#services.scripts.live(owner, script.name, diceOf(reference.id));
    if (live === undefined) throw refusals.notFound();
    const { runtime, scripts } = this.#services;
    if (call.isCustomer) this.#customers.set(namespace.id, { limits: call.limits, outbound: call.outbound });
    const context = await runtime.objectScript(owner!, live, call);
    const { objectClasses = [], codeUpdateDelayMs = 0 } = context.loaded.script;
    if (!objectClasses.includes(namespace.className))
      throw new ObjectRefusal(
        `The Worker's version has no class "${namespace.className}" of Durable Objects.`,
      );
    const { id, className, isSqlite } = namespace;
    const object = {
      ...reference,
      namespace: id,
      className,
      isSqlite,
      serial: scripts.revision,
      delayMs: codeUpdateDelayMs,
    };
    const target = { group: groupOf(script!), script: runtime.cellScript(context), object };
    return { target, context };
  }

  /** The namespace of a call. What the caller's isolate says is not trusted: not even that the id is of the namespace. */
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

const outcomeOf = ({ isSuspect, kind }: CellFault): Outcome => {
  if (!isSuspect) return "unknown";
  if (kind === "cpu") return "exceededCpu";
  return kind === "memory" ? "exceededMemory" : "unknown";
};

const entryOf = (context: RunContext) =>
  ({ context, entrypoint: undefined, params: undefined, seesCf: true }) as const;

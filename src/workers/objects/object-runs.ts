import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LRUCache } from "lru-cache";
import { visitorHeaders } from "../../edge/http/headers.ts";
import { ObjectRefusal, Refusal } from "../../sandbox/errors.ts";
import type { ObjectCells, ObjectTarget } from "../../sandbox/objects/object-cells.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { ActingObject } from "../../sandbox/objects/standing.ts";
import type { ObjectRoute } from "../../sandbox/protocol.ts";
import { withoutVisitor } from "../runtime/run-root.ts";
import { bodyOf, nestedRequest } from "../runtime/cell-requests.ts";
import { refusals } from "../runtime/errors.ts";
import type { ObjectCall, ObjectGate } from "../runtime/object-gate.ts";
import type { RunContext } from "../runtime/run-context.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { ScriptOwner, Script } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import { diceOf, isIdOf } from "./ids.ts";
import type { ObjectNamespace } from "./namespace.ts";
import { groupOf, type ObjectNamespaces } from "./namespaces.ts";

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
    const { runtime, cells } = this.#services;
    const { target, context } = await this.#resolve(call);
    const body = bodyOf(request, runtime.bodyBytesMax);
    await cells.run(target, {
      request: nestedRequest(entryOf(context), url, request, body),
      answer: { response, headers: (raw) => [...raw] },
      hooks: () => runtime.hooksOf(context),
    });
  }

  async upgrade(
    call: ObjectCall,
    { url, request, socket, head }: { url: URL; request: IncomingMessage; socket: Socket; head: Buffer },
  ): Promise<void> {
    const { runtime, cells } = this.#services;
    const { target, context } = await this.#resolve(call);
    await cells.run(target, {
      request: nestedRequest(entryOf(context), url, request, null),
      answer: {
        socket,
        head,
        headers: (raw) => visitorHeaders(raw, ""),
        idleTimeoutMs: runtime.idleTimeoutMs,
      },
      hooks: () => runtime.hooksOf(context),
    });
  }

  async route(call: ObjectCall, slot: number | undefined): Promise<ObjectRoute> {
    const { runtime, cells } = this.#services;
    const { target, context } = await this.#resolve(call);
    return cells.route(target, runtime.hooksOf(context), slot);
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
    return runtime.hooksOf(await runtime.objectScript(owner!, live, call));
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

const entryOf = (context: RunContext) =>
  ({ context, entrypoint: undefined, params: undefined, seesCf: true }) as const;

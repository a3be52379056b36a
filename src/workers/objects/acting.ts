import type { LRUCache } from "lru-cache";
import { ObjectRefusal } from "../../sandbox/errors.ts";
import { readAlarmOutcome } from "../../sandbox/gateway/alarm-messages.ts";
import { refuse } from "../../sandbox/gateway/gateway-server.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { ObjectTarget } from "../../sandbox/objects/object-cells-options.ts";
import type { ObjectCells } from "../../sandbox/objects/object-cells.ts";
import type { ActingObject } from "../../sandbox/objects/standing.ts";
import type { AlarmCall, AlarmNotice, AlarmOutcome, ObjectReference } from "../../sandbox/protocol.ts";
import type { Caller } from "../binding.ts";
import { CollectedResponse } from "../runtime/collected-response.ts";
import { refusals } from "../runtime/errors.ts";
import type { ObjectCall } from "../runtime/object-gate.ts";
import type { RunContext } from "../runtime/run-context.ts";
import { withoutVisitor } from "../runtime/run-root.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Script, ScriptOwner } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { ActingOrigin } from "./alarms/alarm-store.ts";
import type { AlarmRunner } from "./alarms/alarms.ts";
import { diceOf, isIdOf } from "./ids.ts";
import type { ObjectNamespace } from "./namespace.ts";
import { localCallsOf } from "./local-calls.ts";
import { groupOf, type ObjectNamespaces } from "./namespaces.ts";
import { standingRun } from "../tail/standing-run.ts";
import { inSpan } from "../../platform/tracing/spans/span.ts";
import type { Tracer } from "../../platform/tracing/spans/tracer.ts";
import { nameRun } from "../runtime/run-span.ts";
import { withinEvent } from "./event-span.ts";

export interface ObjectRunServices {
  namespaces: ObjectNamespaces;
  scripts: Scripts;
  runtime: Runtime;
  cells: ObjectCells;
  /** The owner of a script: its account or its dispatch namespace. */
  ownerOf: (script: Script) => ScriptOwner | undefined;
  /** The generation of the configuration: differs after each change that may affect the target of a call. */
  generation: () => string;
  /** Whether a live log of a script is open. */
  isWatched: (caller: Caller) => boolean;
  /** Undefined without traces. */
  tracer?: Tracer | undefined;
}

/** The last dispatch to a customer, by namespace: its objects act with the same limits and outbound script. */
export type LastDispatches = LRUCache<string, Pick<ObjectCall, "limits" | "outbound">>;

/** The code of an object's run. */
export interface ObjectCode {
  namespace: ObjectNamespace;
  script: Script;
  context: RunContext;
}

/** The object of a reference, with the script and the class that its cell has to run. */
export function targetOf(
  { runtime, scripts }: ObjectRunServices,
  { namespace, script, context }: ObjectCode,
  reference: ObjectReference,
): ObjectTarget {
  const { objectClasses = [], codeUpdateDelayMs = 0 } = context.loaded.script;
  if (!objectClasses.includes(namespace.className))
    throw new ObjectRefusal(`The Worker's version has no class "${namespace.className}" of Durable Objects.`);
  const { id, className, isSqlite } = namespace;
  const object = {
    ...reference,
    namespace: id,
    className,
    isSqlite,
    serial: scripts.revision,
    delayMs: codeUpdateDelayMs,
  };
  return { group: groupOf(script), script: runtime.cellScript(context), object };
}

/** Time limit of an alarm's handler, as in the public service. */
const alarmMsMax = 15 * 60_000;
const outcomeBytesMax = 16 * 1024;
/** The hooks of a customer's object whose last dispatch is unknown. */
const withoutCaller: RunHooks = {
  fetch: (_url, _request, response) => refuse(response, "This fetch belongs to no request in progress."),
};

/** Objects that act without a request: in their constructors, and for alarms and messages of WebSockets. */
export class ActingObjects implements AlarmRunner {
  readonly #services: ObjectRunServices;
  readonly #customers: LastDispatches;

  constructor(services: ObjectRunServices, customers: LastDispatches) {
    this.#services = services;
    this.#customers = customers;
  }

  /** The hooks of a run that no request began; undefined if the object may not act. */
  async standing(object: ActingObject): Promise<RunHooks | undefined> {
    const code = await this.#codeOf(object);
    if (code === undefined) return undefined;
    const { tracer } = this.#services;
    if (tracer === undefined) return this.#hooksOf(object, code);
    const span = (code.context.span = tracer.begin(`object event ${code.script.name}`, "internal"));
    nameRun(span, code.context);
    const hooks = this.#hooksOf(object, code);
    return span.isSampled && hooks !== undefined ? withinEvent(hooks, span) : hooks;
  }

  ownerOf(namespaceId: string): string | undefined {
    const script = this.#scriptOf(namespaceId);
    return script && groupOf(script);
  }

  /** The data for the object's next run. The name is hostile input: it is kept only if the id was made from it. */
  originOf({ namespace, id }: ActingObject, { name, jurisdiction }: AlarmNotice): ActingOrigin {
    const isName =
      name !== undefined && isIdOf(namespace, { id, name, ...(jurisdiction && { jurisdiction }) });
    return { ...(isName && { name }), jurisdiction, ...this.#customers.get(namespace) };
  }

  /** Runs the alarm of an object. Rejects with an ObjectRefusal, a CellError or a Refusal. */
  async run(object: ActingObject, alarm: AlarmCall, origin: ActingOrigin): Promise<AlarmOutcome> {
    const { name, jurisdiction, limits, outbound } = origin;
    if (outbound !== undefined && !this.#customers.has(object.namespace))
      this.#customers.set(object.namespace, { limits, outbound });
    const code = await this.#codeOf(object);
    if (code === undefined) throw refusals.notFound();
    const reference = { id: object.id, ...(name && { name }), ...(jurisdiction && { jurisdiction }) };
    return inSpan(this.#services.tracer?.begin(`alarm ${code.script.name}`, "internal"), async (span) => {
      code.context.span = span;
      if (span !== undefined) nameRun(span, code.context);
      const outcome = await this.#fire(object, code, reference, alarm);
      if (outcome.outcome === "failed") span?.fail("exception");
      return outcome;
    });
  }

  async #fire(
    object: ActingObject,
    code: ObjectCode,
    reference: ObjectReference,
    alarm: AlarmCall,
  ): Promise<AlarmOutcome> {
    const calls = localCallsOf(this.#services, code.context);
    const metadata = { alarm, ...(calls && { calls }) };
    const response = new CollectedResponse(outcomeBytesMax);
    const timer = setTimeout(() => response.destroy(), alarmMsMax);
    try {
      await this.#services.cells.run(targetOf(this.#services, code, reference), {
        request: { method: "GET", path: "/", headers: ["host", "alarm"], body: null, metadata },
        answer: { response, headers: (raw) => [...raw] },
        hooks: () => this.#hooksOf(object, code) ?? withoutCaller,
      });
    } finally {
      clearTimeout(timer);
    }
    const body = response.bodyInTime(`The alarm did not end within ${alarmMsMax / 60_000} minutes.`);
    return readAlarmOutcome(body.toString());
  }

  #scriptOf(namespaceId: string): Script | undefined {
    const { scripts, namespaces } = this.#services;
    const namespace = namespaces.find(namespaceId);
    return namespace?.scriptId == null ? undefined : scripts.findById(namespace.scriptId);
  }

  async #codeOf({ namespace, id }: ActingObject): Promise<ObjectCode | undefined> {
    const { scripts, runtime, namespaces } = this.#services;
    const script = this.#scriptOf(namespace);
    const owner = script && this.#services.ownerOf(script);
    const live = script && owner && scripts.live(owner, script.name, diceOf(id));
    if (live === undefined) return undefined;
    const last = this.#customers.get(namespace);
    const context = await runtime.objectScript(owner!, live, {
      root: withoutVisitor(),
      depth: 0,
      isCustomer: owner!.namespace !== undefined,
      limits: last?.limits,
      outbound: last?.outbound,
      span: undefined,
    });
    return { namespace: namespaces.find(namespace)!, script: script!, context };
  }

  /** Without the outbound script of a dispatch a customer's object may not act. */
  #hooksOf({ id }: ActingObject, { namespace, script, context }: ObjectCode): RunHooks | undefined {
    const { runtime } = this.#services;
    if (script.namespaceId !== null && !this.#customers.has(namespace.id)) return undefined;
    return standingRun(runtime.objectHooks(context), (event) =>
      runtime.traceOf(context, event, namespace.className, id),
    );
  }
}

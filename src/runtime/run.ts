import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { internal } from "../cells/cell-folder.ts";
import { CellError } from "../cells/errors.ts";
import type { Thrown } from "../cells/exchange.ts";
import type { Child, Dispatched, LateRun, NestedRun, RunHooks } from "../cells/front-server.ts";
import type { EdgeVisit, UpgradeVisit, Visit } from "../edge/handlers.ts";
import { VisitorError } from "../edge/errors.ts";
import type { Binding, BindingOf } from "../scripts/bindings.ts";
import type { RunTrace } from "../tail/run-trace.ts";
import { answerHead } from "../util/raw-http.ts";
import { throwInScript, type Caller } from "./binding.ts";
import type { Dispatch } from "./dispatch.ts";
import { messages, Refusal, refusals } from "./errors.ts";
import type { Runtime } from "./runtime.ts";
import type { LoadedScript } from "./script-cache.ts";

export interface RunLimits {
  cpuMs: number;
  subRequests: number;
}

/** Where a customer's fetches go first: a script of the host's, with what it is to know of the customer. */
export interface OutboundScript {
  service: string;
  entrypoint: string | undefined;
  params: Readonly<Record<string, unknown>>;
}

/** What all runs for the sake of one request have in common. */
export interface RunRoot {
  visit: Visit | undefined;
  /** Goes on from the visit to its zone's origin, if there is one. */
  next: EdgeVisit["next"] | undefined;
  nextUpgrade: UpgradeVisit["next"] | undefined;
  /** The last limit that a script went over which another one had called. */
  limitFault: string | undefined;
}

/** For what nobody has asked for over HTTP, or what goes on when the visitor has the answer. */
export const noVisit = (): RunRoot => ({
  visit: undefined,
  next: undefined,
  nextUpgrade: undefined,
  limitFault: undefined,
});

export interface RunContext {
  loaded: LoadedScript;
  caller: Caller;
  limits: RunLimits;
  outbound: OutboundScript | undefined;
  root: RunRoot;
  /** How many scripts have called each other to come here. */
  depth: number;
}

/** A script that a run leads to. */
export interface Target {
  context: RunContext;
  entrypoint: string | undefined;
  /** Added to its `env` for this request. */
  params: Readonly<Record<string, unknown>> | undefined;
  /** Whether it sees what the visitor's connection says. */
  seesCf: boolean;
}

const depthMax = 16;

/** One run of a script, as the front sees it: everything that the script asks for comes here. */
export class Run implements RunHooks {
  readonly #runtime: Runtime;
  readonly #context: RunContext;
  readonly #trace: RunTrace | undefined;
  /** Whether what it dispatches is to be watched one by one. */
  readonly #isCareful: boolean;
  #subrequests = 0;
  #hasPassed = false;

  /** `trace` is there where somebody watches. */
  constructor(runtime: Runtime, context: RunContext, trace?: RunTrace, isCareful = false) {
    this.#runtime = runtime;
    this.#context = context;
    this.#trace = trace;
    this.#isCareful = isCareful;
  }

  fetch(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const said = request.headers[internal.event] === "trace" ? this.#trace : undefined;
    (said?.collect(request, response) ?? this.#answer(url, request, response)).catch((error: unknown) =>
      this.#fail(error, request, response),
    );
  }

  upgrade(url: URL, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#answerUpgrade(url, request, socket as Socket, head).catch((error: unknown) => {
      // Whoever asked is told why, as long as nothing has been said.
      if ((socket as Socket).bytesWritten > 0) socket.destroy();
      else socket.end(refusedUpgrade(this.#told(error)));
    });
  }

  /** What is known of the visitor is not kept for what the script left running. */
  answered(): LateRun {
    const { loaded, ...context } = this.#context;
    const { depth, root } = context;
    if (depth > 0) return this;
    root.visit = undefined;
    root.next = undefined;
    root.nextUpgrade = undefined;
    if (this.#subrequests > 0 || this.#trace !== undefined || this.#isCareful) return this;
    // One that has asked for nothing yet is like any other of its version with the same limit.
    const { subRequests } = context.limits;
    const known = loaded.late.get(subRequests);
    if (known !== undefined) return known;
    const runtime = this.#runtime;
    const late = (): Run => new Run(runtime, { ...context, loaded, root: noVisit() });
    loaded.late.set(subRequests, late);
    return late;
  }

  async nested(name: string): Promise<NestedRun> {
    return this.#refusing(async () => this.#nested(name));
  }

  async #nested(name: string): Promise<NestedRun> {
    this.#count();
    const binding = this.#binding(name);
    if (binding?.type !== "service") throw new Refusal(`The binding "${name}" is not a service`);
    const { context, entrypoint } = await this.#serviceTarget(binding);
    return {
      script: this.#runtime.cellScript(context),
      entrypoint: entrypointName(entrypoint),
      hooks: new Run(this.#runtime, context),
    };
  }

  #count(): void {
    if (++this.#subrequests > this.#context.limits.subRequests) throw refusals.subrequests();
  }

  #binding(name: string): Binding | undefined {
    return this.#context.loaded.script.bindings.find((binding) => binding.name === name);
  }

  async #answer(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers[internal.pass] !== undefined) {
      await this.#passOn(url, request, response);
      return;
    }
    this.#count();
    const binding = this.#bindingOf(request);
    const target = await this.#target(binding, request);
    if (target !== undefined) await this.#runtime.runNested(target, { url, request, response });
    else if (binding !== undefined) {
      const handler = this.#runtime.bindingHandler(binding.type);
      if (handler === undefined) throw new Refusal(`The binding "${binding.name}" cannot be used here.`);
      await handler({ caller: this.#context.caller, binding: binding as never, url, request, response });
    } else if (this.#isOfVisit(url))
      await this.#context.root.next!(request, response, url.pathname + url.search);
    else await this.#runtime.outbound.fetch(url, request, response);
  }

  /** For a script that has thrown: its visitor's request goes on to the origin, once. */
  async #passOn(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { depth, root } = this.#context;
    if (depth > 0 || this.#hasPassed || !this.#isOfVisit(url)) throw new Refusal("There is no origin here.");
    this.#hasPassed = true;
    await root.next!(request, response, url.pathname + url.search);
  }

  async #answerUpgrade(url: URL, request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    this.#count();
    const binding = this.#bindingOf(request);
    const target = await this.#target(binding, request);
    if (target !== undefined) await this.#runtime.runNestedUpgrade(target, { url, request, socket, head });
    else if (binding !== undefined) throw new Refusal(`The binding "${binding.name}" takes no WebSockets.`);
    else if (this.#isOfVisit(url))
      await this.#context.root.nextUpgrade!(request, socket, head, url.pathname + url.search);
    else await this.#runtime.outbound.upgrade(url, request, socket, head);
  }

  #bindingOf(request: IncomingMessage): Binding | undefined {
    const name = request.headers[internal.binding];
    if (name === undefined) return undefined;
    const binding = this.#binding(decodeURIComponent(String(name)));
    if (binding === undefined) throw new Refusal("The script has no such binding.");
    return binding;
  }

  /** The script that a request goes to: by a binding, or as a customer's way out. */
  async #target(binding: Binding | undefined, request: IncomingMessage): Promise<Target | undefined> {
    if (binding === undefined) return this.#outboundTarget();
    if (binding.type === "service") return this.#serviceTarget(binding);
    return binding.type === "dispatch_namespace" ? this.#dispatchTarget(binding, request) : undefined;
  }

  async #outboundTarget(): Promise<Target | undefined> {
    const { outbound, root, loaded } = this.#context;
    if (outbound === undefined) return undefined;
    const { accountId } = loaded.script;
    const context = await this.#runtime.accountScript(accountId, outbound.service, root, this.#depth());
    return { context, entrypoint: outbound.entrypoint, params: outbound.params, seesCf: false };
  }

  /** A customer gets at the zone that it is dispatched from only as anyone does. */
  #isOfVisit({ hostname }: URL): boolean {
    const { root, loaded } = this.#context;
    const { visit } = root;
    return visit?.zone !== undefined && hostname === visit.host && loaded.script.namespace === undefined;
  }

  async #dispatchTarget(
    binding: BindingOf<"dispatch_namespace">,
    { headers }: IncomingMessage,
  ): Promise<Target> {
    const said = decodeURIComponent(String(headers[internal.dispatch]));
    const outbound = decodeURIComponent(String(headers[internal.outbound] ?? ""));
    const context = await this.#customer(binding, said, outbound);
    const seesCf = this.#runtime.isTrusted(context.caller.accountId, binding.namespace);
    return { context, entrypoint: undefined, params: undefined, seesCf };
  }

  async #customer(
    binding: BindingOf<"dispatch_namespace">,
    said: string,
    outbound: string,
    versionId?: string,
  ): Promise<RunContext> {
    const { script, limits } = JSON.parse(said) as Dispatch;
    const params = outbound === "" ? undefined : (JSON.parse(outbound) as Record<string, unknown>);
    return this.#runtime.customerScript(this.#context.caller.accountId, binding.namespace, script, {
      root: this.#context.root,
      depth: this.#depth(),
      limits,
      outbound: outboundOf(binding, params),
      versionId,
    });
  }

  /** Where a dispatch leads, for a cell that would rather handle it by itself. */
  async dispatch(name: string, said: string, outbound: string): Promise<Dispatched> {
    return this.#refusing(async () => this.#dispatched(name, said, outbound));
  }

  async #dispatched(name: string, said: string, outbound: string): Promise<Dispatched> {
    const binding = this.#dispatchBinding(name);
    const { script } = JSON.parse(said) as Dispatch;
    const context = await this.#customer(binding, said, outbound);
    const { accountId } = context.caller;
    const { loaded } = this.#context;
    loaded.customersCpuMs = Math.min(loaded.customersCpuMs, context.limits.cpuMs);
    return {
      script: this.#runtime.cellScript(context),
      isWatched: this.#isCareful || this.#runtime.mustWatch(context),
      isLasting: this.#runtime.hasOneVersion(accountId, binding.namespace, script),
    };
  }

  async child({ binding, said, outbound, id }: Child): Promise<RunHooks> {
    return this.#refusing(async () => {
      const namespace = this.#dispatchBinding(binding);
      return new Run(this.#runtime, await this.#customer(namespace, said, outbound, id));
    });
  }

  async #refusing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#refusal(error);
    }
  }

  #dispatchBinding(name: string): BindingOf<"dispatch_namespace"> {
    const binding = this.#binding(name);
    if (binding?.type !== "dispatch_namespace")
      throw new Refusal(`The binding "${name}" is not a dispatch namespace`);
    return binding;
  }

  async #serviceTarget({ service, entrypoint }: BindingOf<"service">): Promise<Target> {
    const { loaded, root } = this.#context;
    const context = await this.#runtime.accountScript(loaded.script.accountId, service, root, this.#depth());
    return { context, entrypoint, params: undefined, seesCf: true };
  }

  #depth(): number {
    const depth = this.#context.depth + 1;
    if (depth > depthMax) throw refusals.depth();
    return depth;
  }

  /** What could not be had is an error in the script, which it can catch. */
  #fail(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    request.resume();
    throwInScript(response, this.#told(error));
  }

  /** What went wrong on this side is for the log: it may name files, or other accounts. */
  #refusal(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    this.#runtime.logFault(error, this.#context.caller);
    return refusals.internal();
  }

  #told(error: unknown): { message: string; name?: string } {
    if (error instanceof VisitorError) return { message: `${error.title}: ${error.message}` };
    if (!(error instanceof CellError)) return { message: this.#refusal(error).message };
    if (error.kind === "exception") {
      const { name } = error.cause as Thrown;
      return { message: error.message, name };
    }
    this.#context.root.limitFault = messages[error.kind];
    return { message: messages[error.kind] };
  }
}

const refusedUpgrade = ({ message }: { message: string }): string =>
  answerHead(403, "Forbidden", [
    internal.error,
    encodeURIComponent(message),
    "connection",
    "close",
    "content-length",
    "0",
  ]);

/** As the entry module of a script exports it. */
export const entrypointName = (entrypoint: string | undefined): string =>
  entrypoint === undefined || entrypoint === "default" ? "Entry" : `Entry:${entrypoint}`;

/** The wrapper of the binding has refused what does not fit its declaration. */
function outboundOf(
  { outbound }: BindingOf<"dispatch_namespace">,
  params: Readonly<Record<string, unknown>> = {},
): OutboundScript | undefined {
  if (outbound === undefined) return undefined;
  return { service: outbound.worker.service, entrypoint: outbound.worker.entrypoint, params };
}

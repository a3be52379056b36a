import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { readBytes } from "../../control/api/body.ts";
import { cellHeaders, type ObjectReference } from "../../sandbox/protocol.ts";
import { readReference } from "../../sandbox/gateway/object-reference.ts";
import { headerText, type Child } from "../../sandbox/gateway/cell-messages.ts";
import { Refusal } from "../../sandbox/errors.ts";
import { errorLengths } from "../../sandbox/worker/thrown.ts";
import type { Dispatched, LateRun, NestedRun, RunHooks, RunObject } from "../../sandbox/gateway/run-hooks.ts";
import type { Send, Sender } from "../../edge/origin/outbound.ts";
import { hopsMax, type Via } from "../../edge/http/via.ts";
import type { Binding, BindingOf } from "../bindings.ts";
import type { RunTrace } from "../tail/run-trace.ts";
import { endWith } from "../../platform/util/raw-http.ts";
import { throwInScript } from "../binding.ts";
import { refusalOf, refusals, scriptError } from "./errors.ts";
import { objectCallOf, type ObjectBinding, type ObjectCall } from "./object-gate.ts";
import { readDispatch, readOutbound } from "./read-dispatch.ts";
import type { RunContext, CallTarget } from "./run-context.ts";
import { entrypointName, outboundOf, refusedUpgrade } from "./run-parts.ts";
import { withoutVisitor, treeOf } from "./run-root.ts";
import { below, beginRun, callTraced, transformTraced } from "./run-span.ts";
import type { Runtime } from "./runtime.ts";
import { withCpuLimit } from "./script-cache.ts";
import { readOrder, type SocketOrder } from "./sockets/socket-orders.ts";
import { RunSockets } from "./sockets/sockets.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

/** UTF-8 takes at most three bytes for a UTF-16 unit. */
const stackBytesMax = 3 * errorLengths.stack;

/** One run of a script: answers the script's requests to the gateway. */
export class Run implements RunHooks {
  readonly #runtime: Runtime;
  readonly #context: RunContext;
  readonly #trace: Pick<RunTrace, "collect"> | undefined;
  /** Whether each of the run's dispatches must go through the gateway. */
  readonly #isCareful: boolean;
  /** Stack of the last exception of the script, as reported from its isolate. */
  thrownStack: string | undefined;
  #subrequests = 0;
  #sockets: RunSockets | undefined;
  /** Whether the script has answered; later requests come from work that it left running. */
  #isLate = false;
  #hasPassed = false;

  /** `trace` is undefined without a live log of the script. */
  constructor(runtime: Runtime, context: RunContext, trace?: Pick<RunTrace, "collect">, isCareful = false) {
    this.#runtime = runtime;
    this.#context = context;
    this.#trace = trace;
    this.#isCareful = isCareful;
  }

  get accountId(): string {
    return this.#context.caller.accountId;
  }

  fetch(url: URL, request: IncomingMessage, response: ServerResponse): void {
    unawaited(
      this.#take(url, request, response).catch((error: unknown) => this.#fail(error, request, response)),
    );
  }

  async #take(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const event = request.headers[cellHeaders.event];
    if (event === "thrown") await this.#noteThrown(request, response);
    else if (event === "trace" && this.#trace !== undefined) await this.#trace.collect(request, response);
    else await this.#answer(url, request, response);
  }

  async #noteThrown(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const stack = Buffer.from(await readBytes(request, stackBytesMax)).toString();
    this.thrownStack = stack.slice(0, errorLengths.stack);
    response.writeHead(204).end();
  }

  upgrade(url: URL, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    unawaited(
      this.#answerUpgrade(url, request, socket as Socket, head).catch((error: unknown) => {
        // Shows the reason, unless a part of an answer was sent.
        if ((socket as Socket).bytesWritten > 0) socket.destroy();
        else endWith(socket, refusedUpgrade(scriptError(error, this.#runtime, this.#context)));
      }),
    );
  }

  /** Data about the visitor is not kept for work after the answer. */
  answered(): LateRun {
    const context = this.#context;
    const { loaded, depth, root } = context;
    this.#isLate = true;
    this.#sockets?.closeLater();
    if (depth > 0) return this;
    root.edgeRequest = undefined;
    root.next = undefined;
    root.nextUpgrade = undefined;
    const isOwn = this.#trace !== undefined || this.#isCareful || context.span?.isSampled === true;
    if (this.#subrequests > 0 || root.hops > 0 || isOwn) return this;
    // Runs of the same version and limit share these hooks until one makes a request.
    const { subRequests } = context.limits;
    const known = loaded.late.get(subRequests);
    if (known !== undefined) return known;
    const runtime = this.#runtime;
    const late = (): Run => {
      const run = new Run(runtime, { ...context, root: withoutVisitor(), span: undefined });
      run.#isLate = true;
      return run;
    };
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
    // It may be in a cell of objects, where no customers may run.
    const isCareful = this.#isCareful || this.#context.loaded.mayBeNear;
    const span = context.span && beginRun(below(context, this.#context), "script");
    return {
      script: this.#runtime.cellScript(context),
      entrypoint: entrypointName(entrypoint, "Rpc"),
      hooks: new Run(this.#runtime, context, undefined, isCareful),
      ...(span?.isSampled === true && { ended: () => span.end() }),
    };
  }

  /** Counts calls of this run, and those of all runs that are counted with them. */
  #count(calls = 1, all = calls): void {
    const tree = treeOf(this.#context.root);
    tree.subrequests += all;
    if ((this.#subrequests += calls) > this.#context.limits.subRequests) throw refusals.subrequests();
    if (tree.subrequests > this.#runtime.treeSubRequests) throw refusals.tree();
  }

  /** The chain of calls for a request that this run makes. */
  #via(): Via {
    const { root, depth } = this.#context;
    return { hops: root.hops + depth + 1, tree: treeOf(root), span: this.#context.span };
  }

  #sender(): Sender {
    const { caller, root } = this.#context;
    return { accountId: caller.accountId, via: this.#via(), clientAddress: root.edgeRequest?.clientAddress };
  }

  #binding(name: string): Binding | undefined {
    return this.#context.loaded.script.bindings.find((binding) => binding.name === name);
  }

  async #answer(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers[cellHeaders.pass] !== undefined) {
      await this.#passOn(url, request, response);
      return;
    }
    const order = request.headers[cellHeaders.socket];
    if (order !== undefined) {
      await this.#socket(readOrder(headerText("the socket", order)), request, response);
      return;
    }
    this.#count();
    const binding = this.#bindingOf(request);
    if (binding?.type === "durable_object_namespace") {
      await this.#runtime.objects.fetch(
        this.#callOf(binding, readReference(request.headers[cellHeaders.object])),
        { url, request, response },
      );
      return;
    }
    const target = await this.#target(binding, request);
    below(target?.context, this.#context);
    if (target !== undefined) await this.#runtime.runNested(target, { url, request, response });
    else
      await this.#runtime.asSubrequest(this.#context, response, async () =>
        this.#leave(binding, url, request, response),
      );
  }

  /** Sends a request to a binding other than a script, to the visitor's own origin, or to the internet. */
  async #leave(
    binding: Binding | undefined,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (binding !== undefined) {
      const handler = this.#runtime.bindingHandler(binding.type);
      if (handler === undefined) throw new Refusal(`The binding "${binding.name}" cannot be used here.`);
      await callTraced(this.#context, binding.type, request.method, async (span, caller) =>
        handler({ caller, binding: binding as never, url, request, response, span }),
      );
      return;
    }
    const send: Send = async (to, from, answer) =>
      this.#isInVisitorsZone(to)
        ? this.#context.root.next!(to, from, answer, this.#via())
        : this.#runtime.outbound.fetch(to, from, answer, this.#sender());
    const asked = request.headers[cellHeaders.image];
    if (asked === undefined) {
      await send(url, request, response);
      return;
    }
    const image = headerText("cf.image", asked);
    // Customers do not share cached fetches with others of the account.
    const { accountId, scriptId } = this.#context.caller;
    const id = this.#context.loaded.script.namespace === undefined ? accountId : scriptId;
    await transformTraced(this.#context, async () =>
      this.#runtime.answerImageFetch({ id, accountId }, { image, url, send }, request, response),
    );
  }

  async #socket(order: SocketOrder, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sockets = (this.#sockets ??= new RunSockets(this.#runtime.outbound.sockets, this.#isLate));
    if (order.do !== "open") {
      await sockets.go(order, request, response);
      return;
    }
    this.#count();
    if (this.#context.outbound !== undefined) throw refusals.socketOfCustomer();
    await this.#runtime.asSubrequest(this.#context, response, async () => sockets.open(order, response));
  }

  /** Sends the visitor's request to the origin, once, after the script threw (passThroughOnException). */
  async #passOn(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { depth, root } = this.#context;
    if (depth > 0 || this.#hasPassed || !this.#isInVisitorsZone(url))
      throw new Refusal("The request cannot be passed through to an origin.");
    this.#hasPassed = true;
    await root.next!(url, request, response, this.#via());
  }

  async #answerUpgrade(url: URL, request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    this.#count();
    const binding = this.#bindingOf(request);
    if (binding?.type === "durable_object_namespace") {
      await this.#runtime.objects.upgrade(
        this.#callOf(binding, readReference(request.headers[cellHeaders.object])),
        { url, request, socket, head },
      );
      return;
    }
    const target = await this.#target(binding, request);
    below(target?.context, this.#context);
    if (target !== undefined) await this.#runtime.runNestedUpgrade(target, { url, request, socket, head });
    else if (binding !== undefined) throw new Refusal(`The binding "${binding.name}" takes no WebSockets.`);
    else
      await this.#runtime.asSubrequest(this.#context, socket, async () =>
        this.#isInVisitorsZone(url)
          ? this.#context.root.nextUpgrade!(url, request, socket, head, this.#via())
          : this.#runtime.outbound.upgrade(url, request, socket, head, this.#sender()),
      );
  }

  #callOf(binding: ObjectBinding, reference: ObjectReference): ObjectCall {
    return objectCallOf(this.#context, this.#depth(), binding, reference);
  }

  /** An object that the script calls through a binding. */
  async object(name: string, reference: ObjectReference): Promise<RunObject> {
    const { objects } = this.#runtime;
    const binding = this.#binding(name);
    if (binding?.type !== "durable_object_namespace")
      throw new Refusal(`The binding "${name}" is not a namespace of Durable Objects`);
    const refusing = async <T>(use: (call: ObjectCall) => Promise<T>): Promise<T> =>
      this.#refusing(async () => use(this.#callOf(binding, reference)));
    return {
      route: async (slot, method) =>
        refusing(async (call) => {
          this.#count();
          return objects.route(call, slot, method);
        }),
      grant: async (slot, made) =>
        refusing(async (call) => {
          this.#count(made.ofRun, made.ofFamily);
          const grant = await objects.grant(call, slot);
          if (grant !== undefined) this.#count();
          return grant;
        }),
      hooks: async () => refusing(async (call) => objects.hooks(call)),
    };
  }

  #bindingOf(request: IncomingMessage): Binding | undefined {
    const name = request.headers[cellHeaders.binding];
    if (name === undefined) return undefined;
    const binding = this.#binding(headerText("the binding", name));
    if (binding === undefined) throw new Refusal("The script has no binding with this name.");
    return binding;
  }

  /** The script that a request goes to: of a binding, or the outbound script of a customer. */
  async #target(binding: Binding | undefined, request: IncomingMessage): Promise<CallTarget | undefined> {
    if (binding === undefined) return this.#outboundTarget();
    if (binding.type === "service") return this.#serviceTarget(binding);
    return binding.type === "dispatch_namespace" ? this.#dispatchTarget(binding, request) : undefined;
  }

  async #outboundTarget(): Promise<CallTarget | undefined> {
    const { outbound, root, loaded } = this.#context;
    if (outbound === undefined) return undefined;
    const { accountId } = loaded.script;
    const context = await this.#runtime.accountScript(accountId, outbound.service, root, this.#depth());
    return { context, entrypoint: outbound.entrypoint, params: outbound.params, seesCf: false };
  }

  /** Whether a URL belongs to the zone of the visitor's request. Customers get no special access to that zone. */
  #isInVisitorsZone({ hostname }: URL): boolean {
    const { root, loaded } = this.#context;
    const { edgeRequest: { zone, host } = {} } = root;
    return zone !== undefined && hostname === host && loaded.script.namespace === undefined;
  }

  async #dispatchTarget(
    binding: BindingOf<"dispatch_namespace">,
    { headers }: IncomingMessage,
  ): Promise<CallTarget> {
    const options = headerText("the dispatch", headers[cellHeaders.dispatch]);
    const outbound = headerText("the outbound parameters", headers[cellHeaders.outbound] ?? "");
    const context = await this.#customer(binding, options, outbound);
    const seesCf = this.#runtime.isTrusted(context.caller.accountId, binding.namespace);
    return { context, entrypoint: undefined, params: undefined, seesCf };
  }

  async #customer(
    binding: BindingOf<"dispatch_namespace">,
    options: string,
    outbound: string,
    versionId?: string,
  ): Promise<RunContext> {
    const { script, limits } = readDispatch(options);
    const params = readOutbound(outbound);
    return this.#runtime.customerScript(this.#context.caller.accountId, binding.namespace, script, {
      root: this.#context.root,
      depth: this.#depth(),
      limits,
      outbound: outboundOf(binding, params),
      versionId,
    });
  }

  /** Resolves a dispatch for a cell that handles it by itself. */
  async dispatch(name: string, options: string, outbound: string): Promise<Dispatched> {
    return this.#refusing(async () => this.#dispatched(name, options, outbound));
  }

  async #dispatched(name: string, options: string, outbound: string): Promise<Dispatched> {
    const binding = this.#dispatchBinding(name);
    const { script } = readDispatch(options);
    const context = await this.#customer(binding, options, outbound);
    const { accountId } = context.caller;
    const { loaded } = this.#context;
    if (loaded.group !== undefined)
      loaded.group = withCpuLimit(loaded.group, Math.min(loaded.group.cpuMs, context.limits.cpuMs));
    return {
      script: this.#runtime.cellScript(context),
      isWatched:
        this.#isCareful || this.#context.span?.isSampled === true || this.#runtime.mustWatch(context),
      isLasting: this.#runtime.hasOneVersion(accountId, binding.namespace, script),
    };
  }

  async child({ binding, options, outbound, id }: Child): Promise<RunHooks> {
    return this.#refusing(async () => {
      const namespace = this.#dispatchBinding(binding);
      const context = await this.#customer(namespace, options, outbound, id);
      return new Run(this.#runtime, below(context, this.#context));
    });
  }

  async #refusing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw refusalOf(error, this.#runtime, this.#context);
    }
  }

  #dispatchBinding(name: string): BindingOf<"dispatch_namespace"> {
    const binding = this.#binding(name);
    if (binding?.type !== "dispatch_namespace")
      throw new Refusal(`The binding "${name}" is not a dispatch namespace`);
    return binding;
  }

  async #serviceTarget({ service, entrypoint }: BindingOf<"service">): Promise<CallTarget> {
    const { loaded, root } = this.#context;
    const context = await this.#runtime.accountScript(loaded.script.accountId, service, root, this.#depth());
    return { context, entrypoint, params: undefined, seesCf: true };
  }

  #depth(): number {
    const { root } = this.#context;
    const depth = this.#context.depth + 1;
    if (root.hops + depth > hopsMax) throw refusals.depth();
    return depth;
  }

  /** Makes the script's request throw an error that the script can catch. */
  #fail(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    request.resume();
    throwInScript(response, scriptError(error, this.#runtime, this.#context));
  }
}

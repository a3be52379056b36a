/*
 * The host of one Durable Object. workerd runs it; the customer's class, which is loaded on demand, is its facet. So a
 * class can change without a new process, and files and ids do not depend on scripts.
 */
import { DurableObject } from "cloudflare:workers";
import { collectEnded } from "../limits/worker/collect-early.ts";
import { acquire, isolateOf, load, release, type SystemEnv } from "./loader.ts";
import { takeEvent } from "./hosts.ts";
import { answerCall, answerFetch, type Given, type ReachedHost } from "./objects.ts";
import {
  cellHeaders,
  type AlarmCall,
  type AlarmOutcome,
  type ObjectAddress,
  type ObjectEvent,
  type ObjectFetchMetadata,
  type RunMetadata,
} from "../protocol.ts";

/** The customer's instance, with the methods that its wrapper adds (workers/objects/worker/object.ts). */
interface Instance {
  fetch(request: Request, init?: RequestInit): Promise<Response>;
  selvedgeCall(
    run: string,
    path: readonly string[],
    args: unknown[] | null,
    isTraced?: boolean,
  ): Promise<unknown>;
  selvedgeAlarm(run: string, call: AlarmCall): Promise<AlarmOutcome>;
  /** The version that runs. */
  selvedgeScript(): Promise<string>;
}

/** The parameters of the wrapper of the class. */
export interface InstanceProps {
  object: ObjectAddress;
  /** The id of the script's version. */
  script: string;
}

const facetName = "main";
const updated = "Durable Object reset because its code was updated.";

interface Running {
  instance: Instance;
  script: string;
  /** The name of the script's isolate, which changes when the script was unloaded and loaded again. */
  isolate: string | undefined;
  serial: number;
  /** Pending while the host checks that the facet runs this version. */
  checked: Promise<void> | undefined;
}

export class Host extends DurableObject<SystemEnv> {
  #running: Running | undefined;
  /** The version of the facet, which outlives a broken instance. */
  #script: string | undefined;
  /** Whether this host has opened the facet before. */
  #hasStarted = false;
  #inFlight = 0;
  /** When a newer version was first asked for. */
  #waitsSince = 0;

  readonly #id = this.ctx.id.toString();
  readonly #reached: ReachedHost = {
    id: this.#id,
    fetch: (event, request, init) => this.#within(event, (instance) => instance.fetch(request, init)),
    call: (event, path, args) => this.#call(event, path, args),
  };

  /** An event of the system worker, or a fetch of a script that keeps the host's stub. */
  override async fetch(request: Request): Promise<Response> {
    const given = request.cf as unknown as Partial<RunMetadata & ObjectFetchMetadata> | undefined;
    if (given?.binding !== undefined) return answerFetch(request, this.env, this.#reached);
    const event = takeEvent(given?.selvedgeRun, this.#id);
    return this.#within(event, (instance) => instance.fetch(request));
  }

  /** A method call of a script that keeps the host's stub. */
  selvedgeCall(given: Given): Promise<unknown> {
    return answerCall(given, this.env, this.#reached);
  }

  async call(run: string, path: readonly string[], args: unknown[] | null): Promise<unknown> {
    return this.#call(takeEvent(run, this.#id), path, args);
  }

  async fire(run: string, alarm: AlarmCall): Promise<AlarmOutcome> {
    const event = takeEvent(run, this.#id);
    return this.#within(event, (instance) => instance.selvedgeAlarm(event.run, alarm));
  }

  /** Ends the instance and the host, without waiting for requests in progress. */
  reset(secret: string, reason = "Durable Object has been deleted."): void {
    this.#checkOrder(secret);
    this.#end(new Error(reason));
    this.ctx.abort(reason);
  }

  /** Ends the instance, and deletes its database and those of its facets. */
  async remove(secret: string): Promise<void> {
    this.#checkOrder(secret);
    this.#end(new Error("Durable Object has been deleted."));
    this.ctx.facets.delete(facetName);
    await this.ctx.storage.sync();
  }

  /** Throws unless an order comes from the system worker. */
  #checkOrder(secret: unknown): void {
    if (secret !== this.env.SECRET) throw new TypeError("The platform has not sent this order.");
  }

  #call(event: ObjectEvent, path: readonly string[], args: unknown[] | null): Promise<unknown> {
    return this.#within(event, (instance) => instance.selvedgeCall(event.run, path, args, event.isTraced));
  }

  async #within<T>(event: ObjectEvent, use: (instance: Instance) => Promise<T>): Promise<T> {
    const running = this.#instanceFor(event);
    this.#inFlight++;
    acquire(running.script, this.env);
    try {
      if (running.checked !== undefined) await running.checked;
      return await use(running.instance);
    } catch (error) {
      // The exception may have broken the instance, so the next event opens it again.
      if (this.#running === running) this.#running = undefined;
      if (isFacetFault(error)) this.#restart(error as Error);
      throw error;
    } finally {
      this.#inFlight--;
      release(running.script);
    }
  }

  /** Lets the next event open the facet again, and notifies the gateway. */
  #restart(error: Error): void {
    this.#end(error);
    const headers = { [cellHeaders.control]: this.env.SECRET, [cellHeaders.run]: "facet" };
    this.ctx.waitUntil(this.env.GATEWAY.fetch("http://gateway/object-facet-fault", { headers }));
  }

  /** The instance of the newest version, or the older one while it is busy. */
  #instanceFor(event: ObjectEvent): Running {
    const { script, object } = event;
    const running = this.#running;
    if (running !== undefined && this.#mayGoOn(running, event)) return running;
    const isOther = running !== undefined && running.script !== script;
    if (isOther || this.#isStale(script)) this.#end(new Error(updated));
    this.#waitsSince = 0;
    return this.#start({ object, script });
  }

  #mayGoOn({ script, isolate, serial }: Running, event: ObjectEvent): boolean {
    if (isolate !== isolateOf(script)) return false;
    if (script === event.script || event.object.serial < serial) return true;
    if (this.#inFlight === 0) return false;
    const now = Date.now();
    this.#waitsSince ||= now;
    return now - this.#waitsSince < event.object.delayMs;
  }

  /** Whether the facet may be of another version. */
  #isStale(script: string): boolean {
    return this.#script !== undefined && this.#script !== script;
  }

  #end(reason: Error): void {
    if (this.#script !== undefined) this.ctx.facets.abort(facetName, reason);
    this.#running = undefined;
    this.#script = undefined;
  }

  #start(props: InstanceProps): Running {
    const { script } = props;
    const running: Running = {
      instance: this.#open(props),
      script,
      isolate: isolateOf(script),
      serial: props.object.serial,
      checked: undefined,
    };
    if (!this.#hasStarted) {
      collectEnded();
      running.checked = this.#check(running, props);
    }
    this.#hasStarted = true;
    return (this.#running = running);
  }

  /** A facet that sleeps with sockets outlives its host, so it may be of a version that the next host does not know. */
  async #check(running: Running, props: InstanceProps): Promise<void> {
    const script = await running.instance.selvedgeScript().catch(() => undefined); // the event gets the error
    if (script !== undefined && script !== running.script) {
      this.ctx.facets.abort(facetName, new Error(updated));
      running.instance = this.#open(props);
    }
    running.checked = undefined;
  }

  /** The object has asked for an earlier state: the gateway replaces its files now that no instance has them open. */
  async #restored({ standing }: ObjectAddress): Promise<void> {
    const headers = { [cellHeaders.control]: this.env.SECRET, [cellHeaders.run]: `${standing}.0` };
    const response = await this.env.GATEWAY.fetch("http://gateway/object-start", { headers });
    if (!response.ok) throw new Error((await response.json<{ message: string }>()).message);
  }

  #open(props: InstanceProps): Instance {
    const { env } = this;
    const { script, object } = props;
    const startup = (): FacetStartup => ({
      class: load(script, env).getDurableObjectClass(`Object:${object.className}`, { props }),
      id: object.id,
    });
    acquire(script, env);
    try {
      // workerd calls the function only if the instance has to start.
      const begin = object.isRestored === true ? async () => this.#restored(object).then(startup) : startup;
      const instance = this.ctx.facets.get(facetName, begin) as unknown as Instance;
      this.#script = script;
      return instance;
    } finally {
      release(script);
    }
  }
}

interface FacetStartup {
  class: DurableObjectClass;
  id: string;
}

/** Faults of workerd in calls of facets, which go on for minutes in the same facet (workerd issue 7485). */
const isFacetFault = (error: unknown): boolean =>
  error instanceof Error && /^(?:internal error|Unable to deserialize cloned data)/.test(error.message);

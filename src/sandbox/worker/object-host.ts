/*
 * The host of one Durable Object. workerd runs it; the customer's class, which is loaded on demand, is its facet. So a
 * class can change without a new process, and files and ids do not depend on scripts.
 */
import { DurableObject } from "cloudflare:workers";
import { collectEnded } from "./collect-early.ts";
import { acquire, isolateOf, load, release, type SystemEnv } from "./loader.ts";
import { localEventOf } from "./local-calls.ts";
import { cellHeaders } from "../protocol.ts";
import type { AlarmCall, AlarmOutcome, ObjectAddress, ObjectEvent, RunMetadata } from "../protocol.ts";

/** The customer's instance, with the methods that its wrapper adds (workers/objects/worker/object.ts). */
interface Instance {
  fetch(request: Request): Promise<Response>;
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

  override async fetch(request: Request): Promise<Response> {
    const { selvedgeRun: run, script = "", object } = request.cf as unknown as RunMetadata;
    const event = localEventOf(run) ?? { run, script, object: object! };
    return this.#within(event, async (instance) => instance.fetch(request));
  }

  async call(given: ObjectEvent | string, path: readonly string[], args: unknown[] | null): Promise<unknown> {
    const event = typeof given === "string" ? localEventOf(given)! : given;
    return this.#within(event, async (instance) =>
      instance.selvedgeCall(event.run, path, args, event.isTraced),
    );
  }

  async fire(event: ObjectEvent, alarm: AlarmCall): Promise<AlarmOutcome> {
    return this.#within(event, async (instance) => instance.selvedgeAlarm(event.run, alarm));
  }

  /** Ends the instance and the host, without waiting for requests in progress. */
  reset(reason = "Durable Object has been deleted."): void {
    this.#end(new Error(reason));
    this.ctx.abort(reason);
  }

  /** Ends the instance, and deletes its database and those of its facets. */
  async remove(): Promise<void> {
    this.#end(new Error("Durable Object has been deleted."));
    this.ctx.facets.delete(facetName);
    await this.ctx.storage.sync();
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

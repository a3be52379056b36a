import { decode, encode } from "./codec.ts";

/* The workflow binding of a script: creates and finds instances. */
type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

type Retention = { successRetention?: unknown; errorRetention?: unknown };
interface Create {
  id?: string;
  params?: unknown;
  retention?: Retention | string | number;
  locationHint?: string;
}
interface BatchOptions {
  instances?: Create[];
  count?: number;
  params?: unknown;
  retention?: Create["retention"];
}
/** The platform's answer for each entry of a batch. */
type Made = { id: string } | { index: number; id?: string; code: number; message: string };

const batchMax = 100;

export function workflowBinding(call: BindingFetch): object {
  const post = async (path: string, body: unknown): Promise<unknown> =>
    (await call(path, { method: "POST", body: JSON.stringify(body) })).json();

  async function make(instances: readonly Create[], what: string): Promise<Made[]> {
    const bodies = instances.map((given, i) => input(given, what === "create" ? what : `${what}[${i}]`));
    return (await post("/instances", bodies)) as Made[];
  }

  return {
    async create(options: Create = {}): Promise<WorkflowInstance> {
      const [made] = await make([options], "create");
      if (made === undefined || "code" in made)
        throw failure(made?.message ?? "The instance was not created", made?.code);
      return new WorkflowInstance(call, made.id);
    },

    async createBatch(given: Create[] | BatchOptions): Promise<unknown> {
      if (Array.isArray(given)) {
        const made = await make(given, "createBatch");
        return made.flatMap((each) => ("code" in each ? [] : [new WorkflowInstance(call, each.id)]));
      }
      refuseUnknown("createBatch", given, ["instances", "count", "params", "retention"]);
      const { instances, count, params, retention } = given;
      if ((instances === undefined) === (count === undefined))
        throw new TypeError("createBatch: expected either instances or count");
      if (count !== undefined && !(Number.isInteger(count) && count >= 1 && count <= batchMax))
        throw new TypeError(`createBatch: expected a count of 1 to ${batchMax} but received ${count}`);
      const shared = {
        ...(params === undefined ? {} : { params }),
        ...(retention === undefined ? {} : { retention }),
      };
      const all = (instances ?? Array.from({ length: count! }, () => ({}))).map((each) => ({
        ...shared,
        ...each,
      }));
      const made = await make(all, "createBatch");
      return {
        created: made.flatMap((each) => ("code" in each ? [] : [new WorkflowInstance(call, each.id)])),
        errors: made.filter((each) => "code" in each),
      };
    },

    async get(id: string): Promise<WorkflowInstance> {
      await call(`/instances/${encodeURIComponent(id)}`);
      return new WorkflowInstance(call, id);
    },

    /** Stops and removes instances. */
    async deleteBatch(ids: string[]): Promise<void> {
      await post("/delete", ids);
    },
  };
}

class WorkflowInstance {
  readonly id: string;
  readonly #call: BindingFetch;

  constructor(call: BindingFetch, id: string) {
    this.#call = call;
    this.id = id;
  }

  async status(): Promise<object> {
    const response = await this.#call(this.#path);
    const { status, output, error, rollback } = (await response.json()) as {
      status: string;
      rollback: object | null;
      output: string | null;
      error: { name: string; message: string } | null;
    };
    return {
      status,
      ...(error === null ? {} : { error }),
      output: output === null ? null : decode(output),
      rollback,
    };
  }

  async pause(): Promise<void> {
    await this.#control({ action: "pause" });
  }
  async resume(): Promise<void> {
    await this.#control({ action: "resume" });
  }
  async terminate(options: { rollback?: boolean } = {}): Promise<void> {
    refuseUnknown("terminate", options, ["rollback"]);
    if (options.rollback === true) throw new TypeError("terminate: rollback is not supported");
    await this.#control({ action: "terminate" });
  }
  async restart(options: { from?: { name: string; count?: number; type?: string } } = {}): Promise<void> {
    refuseUnknown("restart", options, ["from"]);
    await this.#control({ action: "restart", ...options });
  }
  async delete(): Promise<void> {
    await this.#call(this.#path, { method: "DELETE" });
  }
  async sendEvent(event: { type: string; payload?: unknown }): Promise<void> {
    refuseUnknown("sendEvent", event, ["type", "payload"]);
    const payload = encode(event.payload ?? null, "The payload of the event");
    await this.#post("/events", { type: event.type, payload });
  }

  get #path(): string {
    return `/instances/${encodeURIComponent(this.id)}`;
  }
  async #control(body: object): Promise<void> {
    await this.#post("/status", body);
  }
  async #post(path: string, body: object): Promise<void> {
    await this.#call(`${this.#path}${path}`, { method: "POST", body: JSON.stringify(body) });
  }
}

/** An installation has one location, so every hint is accepted. */
const createOptions = ["id", "params", "retention", "locationHint"];

function input(given: Create, what: string): object {
  refuseUnknown(what, given, createOptions);
  const { id, params, retention } = given;
  return {
    ...(id === undefined ? {} : { id }),
    params: encode(params ?? {}, `${what}: params`),
    ...(retention === undefined ? {} : { retention: retentionOf(retention, what) }),
  };
}

/** The retention in the form of the API. */
function retentionOf(retention: NonNullable<Create["retention"]>, what: string): unknown {
  if (typeof retention !== "object") return retention;
  refuseUnknown(`${what}: retention`, retention, ["successRetention", "errorRetention"]);
  return { success_retention: retention.successRetention, error_retention: retention.errorRetention };
}

function refuseUnknown(what: string, given: object, known: readonly string[]): void {
  if (typeof given !== "object" || given === null) throw new TypeError(`${what}: expected an object`);
  for (const key of Object.keys(given)) {
    if (!known.includes(key))
      throw new TypeError(`${what} has no option "${key}"; it has ${known.join(", ")}`);
  }
}

const failure = (message: string, code: number | undefined): Error =>
  Object.assign(new Error(message), { name: "WorkflowError", code });

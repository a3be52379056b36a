import type { Logger } from "pino";
import type { Read } from "../../../platform/storage/storage.ts";
import { perform, type Command } from "../engine/commands.ts";
import type { WorkflowEngine } from "../engine/engine.ts";
import type { Nodes } from "../instances.ts";
import { Leases } from "./leases.ts";
import * as store from "../store/store-leases.ts";
import { WorkflowError, workflowErrors } from "../errors.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** For an installation with a single node. */
export function singleNode(engine: WorkflowEngine): Nodes {
  return { ownShard: async () => 0, perform: async (_shard, command) => perform(engine.operations, command) };
}

const pollMs = 100;
const answerPollMs = 20;
const answerTimeoutMs = 20_000;
/** How long a new instance waits for the first shards of a node that has just started. */
const joinTimeoutMs = 5000;

type CommandResult = { ok: true } | { ok: false; kind: string; message: string; scriptMessage: string };

/** Nodes that share a PostgreSQL database. Commands for instances of other nodes go through the database. */
export class SharedNodes implements Nodes {
  readonly leases: Leases;
  readonly #read: Read;
  readonly #engine: WorkflowEngine;
  readonly #logger: Logger;
  readonly #executing = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #isPolling = false;

  constructor(read: Read, node: string, engine: WorkflowEngine, logger: Logger) {
    this.#read = read;
    this.#engine = engine;
    this.#logger = logger;
    this.leases = new Leases(read, node, engine, logger);
  }

  async start(): Promise<void> {
    await this.leases.start();
    this.#timer = setInterval(() => {
      unawaited(this.#poll());
    }, pollMs);
    this.#timer.unref();
  }

  /** Gives the instances to the other nodes. New ones can still be created here until `stop`. */
  async giveBack(): Promise<void> {
    await this.leases.giveBack();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.leases.stop();
  }

  async ownShard(): Promise<number> {
    const end = performance.now() + joinTimeoutMs;
    for (;;) {
      const shard = this.leases.any();
      if (shard !== undefined) return shard;
      if (this.leases.isCutOff) throw workflowErrors.storageFault();
      if (performance.now() > end) throw workflowErrors.moved();
      this.leases.lookSoon();
      await new Promise((resolve) => setTimeout(resolve, answerPollMs));
    }
  }

  async perform(shard: number, command: Command): Promise<void> {
    if (this.leases.holds(shard)) return perform(this.#engine.operations, command);
    const id = await store.sendCommand(this.#read, shard, JSON.stringify(command));
    const end = performance.now() + answerTimeoutMs;
    for (;;) {
      const text = await store.takeAnswer(this.#read, id);
      if (text !== undefined) {
        const answer = JSON.parse(text) as CommandResult;
        if (answer.ok) return undefined;
        throw new WorkflowError(answer.kind, answer.message, answer.scriptMessage);
      }
      if (performance.now() > end && (await store.withdraw(this.#read, id))) throw workflowErrors.moved();
      await new Promise((resolve) => setTimeout(resolve, answerPollMs));
    }
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      const { commands, areShardsFree } = await store.poll(this.#read, this.leases.held);
      if (areShardsFree) this.leases.lookSoon();
      for (const { id, command } of commands) {
        if (this.#executing.has(id)) continue;
        this.#executing.add(id);
        unawaited(this.#execute(id, JSON.parse(command) as Command));
      }
    } catch (error) {
      this.#logger.debug({ err: error }, "workflow commands of other nodes could not be read; trying again");
    } finally {
      this.#isPolling = false;
    }
  }

  async #execute(id: number, command: Command): Promise<void> {
    try {
      await store.answerCommand(this.#read, id, JSON.stringify(await this.#answer(command)));
    } catch (error) {
      this.#logger.warn({ err: error }, "a workflow command of another node could not be answered");
    } finally {
      this.#executing.delete(id);
    }
  }

  async #answer(command: Command): Promise<CommandResult> {
    try {
      await perform(this.#engine.operations, command);
      return { ok: true };
    } catch (error) {
      if (!(error instanceof WorkflowError)) throw error;
      const { kind, message, scriptMessage } = error;
      return { ok: false, kind, message, scriptMessage };
    }
  }
}

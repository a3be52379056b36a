import type { Duration, TestClock } from "./clock.ts";
import type { FaultInjection } from "./faults.ts";
import type { CallJournal } from "./journal.ts";
import type { OutboundControl } from "./outbound.ts";
import type { BatchOutcome, DrivenScript, EventOutcome, ScriptPlace, TestMessage } from "./scripts.ts";
import type { WorkflowInstanceIntrospector, WorkflowIntrospector } from "./workflows.ts";
import type { ControlAddress } from "./control-client.ts";

/** An account, with the credentials that its clients need. */
export interface TestAccount {
  readonly accountId: string;
  /** A token that may do everything in the account. */
  readonly token: string;
  /** Variables for the official clients, the Terraform provider and wrangler, to add to `process.env` of a child process. */
  readonly env: Readonly<Record<string, string>>;
}

/** An account of a seed. */
export interface SeededAccount extends TestAccount {
  /** Values of the account's tokens in the seed, by name. */
  readonly tokens: Readonly<Record<string, string>>;
}

/** A permission of a token, by the name of its permission group, such as "DNS Write". */
export type PermissionName = string;

/** A running platform that a program controls. */
export interface Selvedge extends TestAccount, AsyncDisposable {
  readonly urls: {
    /** The base URL of clients of the API. */
    readonly api: string;
    readonly edge: string;
    readonly edgeTls: string | undefined;
    readonly dashboard: string;
    readonly dns: { readonly host: string; readonly port: number };
  };
  /** The authority of the edge's certificates, in PEM; undefined without a listener for TLS. */
  readonly ca: string | undefined;
  /** Values of the tokens of the seed, by name. A fork has them too; a saved state has no values of tokens. */
  readonly tokens: Readonly<Record<string, string>>;
  /** The other accounts of the seed, by name. */
  readonly accounts: Readonly<Record<string, SeededAccount>>;
  /** The text from which the platform derives ids. */
  readonly seed: string;
  /** The control surface, for programs in other languages. */
  readonly control: ControlAddress;
  readonly clock: TestClock;
  readonly faults: FaultInjection;
  readonly calls: CallJournal;
  readonly outbound: OutboundControl;
  /** Sends a request for any host name to the edge. Redirects are returned, not followed. */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /** Asks the name server. Resolves with the texts of the records, as node:dns returns them. */
  dig(name: string, type?: string): Promise<unknown[]>;
  /** Creates a client with the class of the official package `cloudflare`, with the owner's token or another one. */
  client<C>(official: new (options: { baseURL: string; apiToken: string }) => C, apiToken?: string): C;
  /** A deployed script, by its name, whose handlers the test runs. */
  script(name: string, of?: ScriptPlace): DrivenScript;
  /** `script(name).fetch(…)` */
  fetchScript(name: string, url: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** `script(name).scheduled(…)` */
  runScheduled(name: string, event?: { cron?: string; scheduledTime?: Date }): Promise<EventOutcome>;
  /** `script(name).queue(…)` */
  sendQueueBatch(name: string, queue: string, messages: readonly TestMessage[]): Promise<BatchOutcome>;
  /** Changes the instances of a workflow that start from now on, and finds them. */
  introspectWorkflow(workflow: string, accountId?: string): Promise<WorkflowIntrospector>;
  /** Changes an instance before it is created, and waits for its steps and its end. */
  introspectWorkflowInstance(
    workflow: string,
    id: string,
    accountId?: string,
  ): Promise<WorkflowInstanceIntrospector>;
  /** Creates an account with a token of its own, for tests that run at the same time. */
  account(name?: string): Promise<TestAccount>;
  /** Creates a token with these permissions only, in the account or in one zone of it. A duration begins now. */
  tokenWith(
    can: readonly PermissionName[],
    where?: { zone?: string; expires?: Date | Duration },
  ): Promise<string>;
  /** Restores the state of the start: rows, time and ids. Requests in progress get 409 and have no effect. */
  reset(): Promise<void>;
  /** Saves the state as a snapshot with this name, for `restore`. There are at most 100, and a reset keeps them. */
  snapshot(name: string): Promise<void>;
  removeSnapshot(name: string): Promise<void>;
  restore(name: string): Promise<void>;
  /** Writes the state into a file, with which another platform can start. */
  save(file: string): Promise<void>;
  /** Starts another platform with the state and the time of this one, or of a snapshot. */
  fork(snapshot?: string): Promise<Selvedge>;
  /** All content by table, sorted, without times and secrets: for snapshots of test runners. */
  state(tables?: readonly string[]): Promise<Record<string, object[]>>;
  /**
   * Throws an Error that names the failures since the last check: calls of no operation (with `onUnknown` "fail"),
   * requests that the test did not answer (with `outbound` "refuse"), and answers of the test that threw.
   */
  check(): Promise<void>;
  /**
   * Kills the processes of one script and its workflows; with "STOP", stops them, so that they do not answer. Without a
   * script, also those of objects. Resolves with the number of processes.
   */
  kill(of?: { script?: string; signal?: "KILL" | "STOP" }): Promise<number>;
  /** Stops the platform. Resolves when its process has ended. Throws as `check` does. */
  close(): Promise<void>;
}

import { capability, type Capability } from "../capability.ts";
import { processes } from "../platform/capability-processes.ts";
import type { ProcessCalls } from "../platform/process-calls/calls.ts";
import { failing, understood } from "./call-failures.ts";
import type { BindingDeclaration, BindingDeclarations, BindingRegistry } from "./binding-registry.ts";
import type { BindingHandler, Caller } from "./binding.ts";
import type { Binding, BindingTypeName } from "./bindings.ts";

const callName = "binding";

interface BindingDetails {
  caller: Caller;
  binding: Binding;
}

/** A type of bindings as scripts see it, without the answers to their calls. */
export type ShownBinding<Name extends BindingTypeName> = Pick<BindingDeclaration<Name>, "type" | "isolate">;

/** In edge processes: bindings whose calls main answers, because it has the data or the engines. */
export const bindingsInMain = <Name extends BindingTypeName>(
  name: Name,
  shown: ShownBinding<Name>,
): Capability =>
  capability({
    name: `bindings of type ${name}`,
    processes: "edge",
    needs: [processes],
    create: () => ({}),
    bindings: ({ calls }): BindingDeclarations => ({
      [name]: { ...shown, handler: answeredInMain(calls!) },
    }),
  });

/** Passes the calls of a binding to main. */
export const answeredInMain =
  <Name extends BindingTypeName>(calls: ProcessCalls): BindingHandler<Name> =>
  async ({ caller, binding, url, request, response }) =>
    understood(calls.forward(callName, { caller, binding }, { url, request, response }));

/** In main: answers the calls of scripts in edge processes, which have checked the run and its binding. */
export const answerEdgeProcesses = (calls: ProcessCalls, bindings: BindingRegistry): void =>
  calls.serve<BindingDetails>(callName, async ({ caller, binding }, exchange) => {
    const handler = bindings.find(binding.type)?.handler as BindingHandler<BindingTypeName> | undefined;
    if (handler === undefined) throw new Error(`Bindings of type ${binding.type} have no handler in main`);
    await failing(handler({ caller, binding: binding as never, ...exchange }));
  });

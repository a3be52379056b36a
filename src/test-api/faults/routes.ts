import { routeWithBody, type ControlRoute } from "../control.ts";
import { knownOperation } from "../known-operation.ts";
import { TestFault } from "../test-fault.ts";
import { FaultSchema, type TestFaults } from "./faults.ts";
import type { FaultRules } from "./fault-rules.ts";

/** The routes of faults. */
export const faultRoutes = (faults: TestFaults, operations: ReadonlySet<string>): ControlRoute[] => [
  {
    method: "GET",
    path: "/faults",
    summary: "Lists the faults, the newest of each kind first",
    handle: async () => ({ faults: faults.all.flatMap(({ list }) => list) }),
  },
  routeWithBody({
    method: "POST",
    path: "/faults",
    summary: "Adds a fault of a kind: api (the default), origin, dns, resolver, storage, cells",
    body: FaultSchema,
    async handle(_request, { kind = "api", ...fault }) {
      if ("on" in fault) for (const id of [fault.on.operation ?? []].flat()) knownOperation(operations, id);
      const rules: FaultRules<object> = faults[kind];
      return { id: rules.add(fault) };
    },
  }),
  {
    method: "DELETE",
    path: "/faults",
    summary: "Removes all faults",
    handle: async () => faults.clear(),
  },
  {
    method: "DELETE",
    path: "/faults/{id}",
    summary: "Removes a fault",
    async handle({ params }) {
      const id = params["id"]!;
      if (!faults.all.some((rules) => rules.remove(id)))
        throw new TestFault(404, `No fault has the id ${id}`);
    },
  },
];

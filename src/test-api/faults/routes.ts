import type { z } from "zod";
import type { ControlRoute } from "../control.ts";
import { TestFault } from "../test-fault.ts";
import { FaultKindSchema, faultSchemas, type TestFaults } from "./faults.ts";
import type { FaultRules } from "./fault-rules.ts";

/** The routes of faults. */
export const faultRoutes = (faults: TestFaults): ControlRoute[] => [
  {
    method: "GET",
    path: "/faults",
    summary: "Lists the faults, the newest of each kind first",
    handle: async () => ({ faults: faults.all.flatMap(({ list }) => list) }),
  },
  {
    method: "POST",
    path: "/faults",
    summary: "Adds a fault of a kind: api (the default), origin, dns, resolver, storage, cells",
    async handle(request) {
      const { kind } = await request.body(FaultKindSchema);
      const schema: z.ZodType<object> = faultSchemas[kind].extend({ kind: FaultKindSchema.shape.kind });
      const { kind: _, ...fault } = (await request.body(schema)) as { kind: string };
      const rules: FaultRules<object> = faults[kind];
      return { id: rules.add(fault) };
    },
  },
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

import { z } from "zod";
import { ApiFaultSchema, type ApiFault } from "./api-faults.ts";
import { CellsFaultSchema, type CellsFault } from "./cell-faults.ts";
import { DnsFaultSchema, type DnsFault } from "./dns-faults.ts";
import { FaultRules, type FaultCount } from "./fault-rules.ts";
import { OriginFaultSchema, type OriginFault } from "./origin-faults.ts";
import { ResolverFaultSchema, type ResolverFault } from "./resolver-faults.ts";
import { StorageFaultSchema, type StorageFault } from "./storage-faults.ts";

/** A fault of one kind. The default kind is "api". */
export const FaultSchema = z.discriminatedUnion(
  "kind",
  [
    ApiFaultSchema.extend({ kind: z.literal("api").optional() }),
    OriginFaultSchema.extend({ kind: z.literal("origin") }),
    DnsFaultSchema.extend({ kind: z.literal("dns") }),
    ResolverFaultSchema.extend({ kind: z.literal("resolver") }),
    StorageFaultSchema.extend({ kind: z.literal("storage") }),
    CellsFaultSchema.extend({ kind: z.literal("cells") }),
  ],
  { error: "Expected api, origin, dns, resolver, storage or cells" },
);

/** The faults that tests have added, by kind. */
export class TestFaults {
  readonly api: FaultRules<ApiFault>;
  readonly origin: FaultRules<OriginFault>;
  readonly dns: FaultRules<DnsFault>;
  readonly resolver: FaultRules<ResolverFault>;
  readonly storage: FaultRules<StorageFault>;
  readonly cells: FaultRules<CellsFault>;

  constructor(seed: string) {
    const ids: FaultCount = { count: 0 };
    this.api = new FaultRules("api", seed, ids);
    this.origin = new FaultRules("origin", seed, ids);
    this.dns = new FaultRules("dns", seed, ids);
    this.resolver = new FaultRules("resolver", seed, ids);
    this.storage = new FaultRules("storage", seed, ids);
    this.cells = new FaultRules("cells", seed, ids);
  }

  get all(): FaultRules<object>[] {
    const { api, origin, dns, resolver, storage, cells } = this;
    return [api, origin, dns, resolver, storage, cells];
  }

  clear(): void {
    for (const rules of this.all) rules.clear();
  }
}

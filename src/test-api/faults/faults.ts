import { z } from "zod";
import { ApiFaultSchema, type ApiFault } from "./api-faults.ts";
import { CellsFaultSchema, type CellsFault } from "./cell-faults.ts";
import { DnsFaultSchema, type DnsFault } from "./dns-faults.ts";
import { FaultRules, type FaultCount } from "./fault-rules.ts";
import { OriginFaultSchema, type OriginFault } from "./origin-faults.ts";
import { ResolverFaultSchema, type ResolverFault } from "./resolver-faults.ts";
import { StorageFaultSchema, type StorageFault } from "./storage-faults.ts";

/** The schemas by kind. The default kind is "api". */
export const faultSchemas = {
  api: ApiFaultSchema,
  origin: OriginFaultSchema,
  dns: DnsFaultSchema,
  resolver: ResolverFaultSchema,
  storage: StorageFaultSchema,
  cells: CellsFaultSchema,
} as const;
export const FaultKindSchema = z.looseObject({
  kind: z.enum(Object.keys(faultSchemas) as [TestFaultKind]).default("api"),
});
export type TestFaultKind = keyof typeof faultSchemas;

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

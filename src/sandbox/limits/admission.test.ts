import { EventEmitter } from "node:events";
import { fc } from "../../../test/helpers/properties.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { RunAdmission, type RunAdmissionLimits, type Kind, type ScriptSlots } from "./admission.ts";

const limits: RunAdmissionLimits = {
  capacity: 100,
  accountMax: 25,
  scriptShare: 3,
  waitMs: 10_000,
  patienceMs: 1000,
};

/** Requests that hold their slots until the test ends them. */
class Load {
  readonly admission: RunAdmission;
  readonly held = new Map<ScriptSlots, number>();
  readonly evicting: ScriptSlots[] = [];
  isEvictable = true;
  readonly waits: { share: ScriptSlots; queue: string; client: EventEmitter; waited: string | undefined }[] =
    [];

  constructor(of: RunAdmissionLimits = limits) {
    this.admission = new RunAdmission(of, (share) => {
      if (!this.isEvictable || (this.held.get(share) ?? 0) === 0) return false;
      this.#hold(share, -1);
      this.evicting.push(share);
      return true;
    });
  }

  #hold(share: ScriptSlots, by: number): void {
    this.held.set(share, (this.held.get(share) ?? 0) + by);
  }

  get heldCount(): number {
    return [...this.held.values()].reduce((sum, each) => sum + each, 0);
  }

  /** Returns true if a slot is free at once; otherwise the request waits or is refused. */
  ask(account: string, owner: string, kind: Kind = "request", queue = ""): boolean {
    const share = this.admission.of(account, owner, kind);
    if (this.admission.enter(share)) {
      this.#hold(share, 1);
      return true;
    }
    const wait = { share, queue, client: new EventEmitter(), waited: undefined as string | undefined };
    this.waits.push(wait);
    void this.#wait(wait);
    return false;
  }

  async #wait(wait: Load["waits"][number]): Promise<void> {
    wait.waited = await this.admission.wait(wait.share, wait.client, wait.queue);
    if (wait.waited === "admitted") this.#hold(wait.share, 1);
  }

  end(share: ScriptSlots): void {
    this.#hold(share, -1);
    this.admission.leave(share);
  }

  endEvicted(): void {
    for (const share of this.evicting.splice(0)) this.admission.leave(share);
  }

  /** Enters until no slot is free, and then adds some waiters. */
  fill(account: string, owner: string, kind: Kind = "request"): void {
    while (this.ask(account, owner, kind));
    for (let i = 0; i < 50; i++) this.ask(account, owner, kind);
  }

  heldBy(account: string): number {
    const { shares } = this.admission.of(account, "any", "request").account;
    return Object.values(shares)
      .flatMap((each) => [...each.values()])
      .reduce((sum, share) => sum + (this.held.get(share) ?? 0), 0);
  }
}

beforeEach(() => vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => vi.useRealTimers());

describe("admission", () => {
  test("gives one account its share, three quarters of it to one script, and the others the rest", () => {
    const load = new Load();
    load.fill("greedy", "sleeper");
    expect(load.heldBy("greedy")).toBe(19);
    expect(load.ask("greedy", "other")).toBe(true);
    for (let i = 0; i < 10; i++) load.fill("greedy", `sleeper ${i}`);
    expect(load.heldBy("greedy")).toBe(25);
    expect(load.ask("light", "hello")).toBe(true);
  });

  test("keeps room for the next account however many are greedy", () => {
    const load = new Load({ ...limits, capacity: 1000, accountMax: 250 });
    for (let i = 0; i < 8; i++) {
      expect(load.ask("light", "hello")).toBe(true);
      load.end(load.admission.of("light", "hello", "request"));
      for (let j = 0; j < 10; j++) load.fill(`greedy ${i}`, `sleeper ${j}`);
    }
    expect(load.ask("light", "hello")).toBe(true);
  });

  test("lets calls exceed the slots of requests, refuses them when those are used up, and holds requests back for them", async () => {
    const load = new Load();
    load.fill("one", "a", "call");
    expect(load.heldBy("one")).toBe(38);
    await vi.advanceTimersByTimeAsync(0);
    expect(new Set(load.waits.map(({ waited }) => waited))).toEqual(new Set(["refused"]));
    expect(load.ask("one", "b", "call")).toBe(true);
    expect(load.ask("one", "c", "request")).toBe(false);
    expect(load.ask("two", "c", "request")).toBe(true);
  });

  test("lets calls wait for slots that others have, up to an equal part", async () => {
    const load = new Load({ ...limits, accountMax: 100 });
    load.isEvictable = false; // no request is old enough to be evicted
    for (let i = 0; i < 200; i++) load.ask(`greedy ${i % 3}`, "a", "call");
    while (load.ask("calm", "a", "call"));
    const calm = load.waits.at(-1)!;
    load.ask("greedy 0", "a", "call");
    await vi.advanceTimersByTimeAsync(0);
    // A share that has its equal part is refused at once.
    expect([calm.waited, load.waits.at(-1)!.waited]).toEqual([undefined, "refused"]);
    for (let i = 0; i < 3; i++) load.end(load.admission.of("greedy 0", "a", "call"));
    await vi.advanceTimersByTimeAsync(0);
    expect(calm.waited).toBe("admitted");
  });

  test("requests to one script wait in round-robin order by queue, and the longest queue is refused first", async () => {
    const load = new Load({ ...limits, accountWaitingMax: 10 });
    load.fill("one", "dispatcher");
    load.admission.close();
    await vi.advanceTimersByTimeAsync(0);
    for (let i = 0; i < 12; i++) load.ask("one", "dispatcher", "request", "greedy");
    load.ask("one", "dispatcher", "request", "calm");
    await vi.advanceTimersByTimeAsync(0);
    const calm = load.waits.at(-1)!;
    expect(calm.waited).toBeUndefined();
    const share = load.admission.of("one", "dispatcher", "request");
    load.end(share);
    load.end(share);
    await vi.advanceTimersByTimeAsync(0);
    expect(calm.waited).toBe("admitted");
  });

  test("gives events half of the slots, and leaves the other half to visitors' requests", () => {
    const load = new Load();
    for (let i = 0; i < 10; i++) load.fill("one", `queue ${i}`, "event");
    expect(load.heldBy("one")).toBe(13);
    expect(load.ask("one", "site")).toBe(true);
  });

  test("a request waits, is refused after waitMs, and is dropped when its visitor leaves", async () => {
    const load = new Load();
    load.fill("one", "a");
    const [first, second] = load.waits.filter(({ waited }) => waited === undefined);
    second!.client.emit("close");
    await vi.advanceTimersByTimeAsync(5000);
    expect([first!.waited, second!.waited]).toEqual([undefined, "left"]);
    load.end(load.admission.of("one", "a", "request"));
    await vi.advanceTimersByTimeAsync(0);
    expect(first!.waited).toBe("admitted");
    await vi.advanceTimersByTimeAsync(5000);
    expect(load.admission.waiting).toBe(0);
    expect(load.waits.filter(({ waited }) => waited === undefined)).toEqual([]);
  });

  test("accounts and scripts take turns", async () => {
    const load = new Load({ capacity: 4, accountMax: 4, scriptShare: 3, waitMs: 1e6, patienceMs: 1e6 });
    const holders = Array.from({ length: 4 }, (_, i) => `holder ${i}`);
    for (const holder of holders) load.ask(holder, "a");
    const names = ["one a", "one b", "two a", "three a"];
    for (const name of names) load.ask(...(name.split(" ") as [string, string]));
    const order: string[] = [];
    for (const holder of holders) {
      load.end(load.admission.of(holder, "a", "request"));
      await vi.advanceTimersByTimeAsync(0);
      for (const [i, { share, waited }] of load.waits.entries())
        if (waited === "admitted" && load.held.get(share) === 1) {
          order.push(names[i]!);
          load.end(share);
        }
    }
    expect(order.slice(0, 3).map((name) => name.split(" ")[0])).toEqual(["one", "two", "three"]);
  });

  test("a script below its equal part evicts a run of the script with the most, after patienceMs", async () => {
    const load = new Load();
    for (let i = 0; i < 20; i++) load.fill("one", `sleeper ${i}`);
    const evictedBefore = load.evicting.length;
    expect(load.ask("one", "light")).toBe(false);
    await vi.advanceTimersByTimeAsync(limits.patienceMs);
    expect(load.waits.at(-1)!.waited).toBe("admitted");
    expect(load.evicting.length).toBeGreaterThan(evictedBefore);
  });

  const account = fc.integer({ min: 0, max: 5 }).map((n) => `account ${n}`);
  const owner = fc.integer({ min: 0, max: 3 }).map((n) => `script ${n}`);
  const kind = fc.constantFrom<Kind>("request", "event", "call");
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("ask" as const), account, owner, kind }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("end", "leave"), pick: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.nat(3000) }) },
  );
  const anyLimits = fc
    .record({ capacity: fc.integer({ min: 4, max: 40 }), share: fc.constantFrom(0.25, 0.5, 1) })
    .map(({ capacity, share }) => ({ ...limits, capacity, accountMax: Math.floor(capacity * share) }));

  test("in any sequence of events counts are right, limits hold, and every waiter is answered", async () => {
    await fc.assert(
      fc.asyncProperty(anyLimits, fc.array(action, { maxLength: 300 }), async (of, actions) => {
        const load = new Load(of);
        for (const each of actions) {
          if (each.do === "ask") load.ask(each.account, each.owner, each.kind);
          else if (each.do === "pass") {
            await vi.advanceTimersByTimeAsync(each.ms);
            load.endEvicted();
          } else if (each.do === "leave") {
            const waiting = load.waits.filter(({ waited }) => waited === undefined);
            waiting[each.pick % waiting.length]?.client.emit("close");
          } else {
            const holding = [...load.held].filter(([, count]) => count > 0);
            if (holding.length > 0) load.end(holding[each.pick % holding.length]![0]);
          }
          await vi.advanceTimersByTimeAsync(0);
          const { admission, evicting, heldCount } = load;
          expect(heldCount).toBeLessThanOrEqual(of.capacity * 2);
          const calls = [...load.held].filter(([{ kind }]) => kind === "call");
          const callsCount = calls.reduce((sum, [, count]) => sum + count, 0);
          expect(heldCount - callsCount).toBeLessThanOrEqual(of.capacity);
          expect(admission.inFlight).toBe(heldCount + evicting.length);
          expect(admission.waiting).toBe(load.waits.filter(({ waited }) => waited === undefined).length);
          expect(admission.waiting).toBeLessThanOrEqual(of.capacity);
          for (let n = 0; n <= 5; n++)
            expect(load.heldBy(`account ${n}`)).toBeLessThanOrEqual(of.accountMax * 2);
        }
        load.admission.close();
        load.endEvicted();
        await vi.advanceTimersByTimeAsync(0);
        for (const [share, count] of load.held) for (let i = 0; i < count; i++) load.end(share);
        expect([load.admission.inFlight, load.admission.waiting]).toEqual([0, 0]);
        expect(load.waits.filter(({ waited }) => waited === undefined)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test("always admits one request of a new account, under any load of others", async () => {
    const greedy = fc.array(fc.record({ account: fc.nat(60), owner: fc.nat(5), kind }), { maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(anyLimits, greedy, async (of, all) => {
        const load = new Load(of);
        for (const each of all) load.fill(`greedy ${each.account}`, `script ${each.owner}`, each.kind);
        // With more accounts than slots an equal part is less than one.
        fc.pre(new Set(all.map((each) => each.account)).size < of.capacity / 2);
        const isAdmitted = load.ask("newcomer", "script");
        await vi.advanceTimersByTimeAsync(of.patienceMs);
        expect(isAdmitted || load.waits.at(-1)!.waited === "admitted").toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});

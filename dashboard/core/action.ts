import { useState } from "preact/hooks";
import { toast } from "../parts/toast.tsx";
import { invalidate } from "./cache.ts";
import { asFailure, perform, type Answer, type ApiFailure, type Call } from "./client.ts";

/** A change that a person makes. Only one call runs at a time; then a message is shown and the changed data reloaded. */
export interface Action {
  isBusy: boolean;
  failure: ApiFailure | undefined;
  clear(): void;
  /** Returns the answer; undefined if the call failed, with the reason in `failure`. */
  run<T>(call: Call): Promise<Answer<T> | undefined>;
}

interface ActionOptions {
  /** The message at its end, such as "Zone added". */
  done?: string | undefined;
  /** Paths below which everything is read again. */
  invalidates?: readonly string[] | undefined;
  /** Shows a failure as a message too, where no form shows it. */
  tellsFailure?: boolean;
}

export function useAction({ done, invalidates = [], tellsFailure = false }: ActionOptions = {}): Action {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  return {
    isBusy,
    failure,
    clear: () => setFailure(undefined),
    async run<T>(call: Call) {
      setBusy(true);
      setFailure(undefined);
      try {
        const answer = await perform<T>(call);
        if (done !== undefined) toast(done);
        return answer;
      } catch (error) {
        const known = asFailure(error);
        setFailure(known);
        if (tellsFailure) toast(known.message, "bad");
        return undefined;
      } finally {
        setBusy(false);
        invalidate(...invalidates);
      }
    },
  };
}

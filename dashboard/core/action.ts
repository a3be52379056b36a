import { useState } from "preact/hooks";
import { toast } from "../parts/toast.tsx";
import { invalidate } from "./cache.ts";
import { asFailure, perform, type ApiResponse, type ApiFailure, type Call } from "./client.ts";

/** A change that a person makes. Only one call runs at a time; then a message is shown and the changed data reloaded. */
export interface Action {
  isBusy: boolean;
  failure: ApiFailure | undefined;
  clear(): void;
  /** Returns the answer; undefined if the call failed, with the reason in `failure`. */
  run<T>(call: Call): Promise<ApiResponse<T> | undefined>;
}

interface ActionOptions {
  /** The message at its end, such as "Zone added". */
  done?: string | undefined;
  /** Paths below which everything is read again. */
  invalidates?: readonly string[] | undefined;
  /** Shows a failure as a message too, where no form shows it. */
  tellsFailure?: boolean;
  /** Reads nothing again at a conflict, because what is read would replace the person's input. */
  keepsAtConflict?: boolean;
}

export function useAction({
  done,
  invalidates = [],
  tellsFailure = false,
  keepsAtConflict,
}: ActionOptions = {}): Action {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  return {
    isBusy,
    failure,
    clear: () => setFailure(undefined),
    async run<T>(call: Call) {
      setBusy(true);
      setFailure(undefined);
      let isConflict = false;
      try {
        const answer = await perform<T>(call);
        if (done !== undefined) toast(done);
        return answer;
      } catch (error) {
        const known = asFailure(error);
        setFailure(known);
        isConflict = known.status === 412;
        if (tellsFailure) toast(known.message, "bad");
        return undefined;
      } finally {
        setBusy(false);
        if (!isConflict || keepsAtConflict !== true) invalidate(...invalidates);
      }
    },
  };
}

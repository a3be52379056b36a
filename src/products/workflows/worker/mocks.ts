import { decode, makeError } from "./codec.ts";
import type { StepMocks } from "./messages.ts";

type Callback<Context extends { attempt: number }> = (context: Context) => unknown;

/** The test kit's mocks of an instance's steps. They take the place of code and of durations, and nothing else. */
export class Mocks {
  readonly #given: StepMocks;

  constructor(given: StepMocks) {
    this.#given = given;
  }

  /** The code of a step: its own, or its mock's. Of several mocks of a step, the newest is used. */
  code<Context extends { attempt: number }>(key: string, own: Callback<Context>): Callback<Context> {
    const { steps, isReplay } = this.#given;
    if (isReplay === true)
      return () => {
        throw makeError("NonRetryableError", "A replay runs no steps");
      };
    const mocks = steps.filter(({ step }) => `do:${step}` === key);
    if (mocks.length === 0) return own;
    return (context) => {
      const mock = mocks.findLast(({ times }) => times === undefined || context.attempt <= times);
      if (mock === undefined) return own(context);
      if ("value" in mock) return decode(mock.value);
      const { name, message } = mock.error;
      throw makeError(name, message);
    };
  }

  skipsSleep = (key: string): boolean => includes(this.#given.sleeps, key, "sleep:");
  skipsDelay = (key: string): boolean => includes(this.#given.retryDelays, key, "do:");
  timesOut = (key: string): boolean => includes(this.#given.eventTimeouts, key, "waitForEvent:");
}

const includes = (steps: StepMocks["sleeps"], key: string, kind: string): boolean =>
  steps === "all" || steps.some((step) => `${kind}${step}` === key);

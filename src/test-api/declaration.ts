import { declare } from "../declaration.ts";
import { choice } from "../platform/config/setting.ts";

/** The control of a platform by tests. */
export const declaration = declare({
  settings: {
    testApi: {
      kind: "flag",
      flag: "test-api",
      env: "SELVEDGE_TEST_API",
      default: false,
      describe:
        "let tests control this platform at /_selvedge/test/v1: reset, clock, faults, journal; only on loopback, and only for a data folder that was created with this setting",
    },
    testSeed: {
      kind: "text",
      flag: "test-seed",
      env: "SELVEDGE_TEST_SEED",
      describe:
        "with --test-api: a text that determines all ids, and which calls are hit by faults with a probability",
    },
    testNow: {
      kind: "text",
      flag: "test-now",
      env: "SELVEDGE_TEST_NOW",
      form: {
        expected: "a time from 2000-01-01 to 2100-01-01, such as 2026-01-31T12:00:00Z",
        accepts: (text: string) => Date.parse(text) >= Date.UTC(2000) && Date.parse(text) <= Date.UTC(2100),
      },
      describe: "with --test-api: the time at the start (default: the system's)",
    },
    testClock: {
      ...choice(["real", "frozen", "skip"]),
      flag: "test-clock",
      env: "SELVEDGE_TEST_CLOCK",
      default: "real",
      describe:
        "with --test-api: how time passes from the start on. frozen: it stands still; skip: it jumps to the next due work",
    },
    testState: {
      kind: "text",
      flag: "test-state",
      env: "SELVEDGE_TEST_STATE",
      describe:
        "with --test-api and --ephemeral: a file with the content to start with: a saved state, a file of selvedge import, or a seed",
    },
  },
  checkSettings: ({ testApi, testSeed, testNow, testClock, testState }) =>
    !testApi && (testClock !== "real" || [testSeed, testNow, testState].some((value) => value !== undefined))
      ? "Expected --test-api with --test-seed, --test-now, --test-clock and --test-state"
      : undefined,
});

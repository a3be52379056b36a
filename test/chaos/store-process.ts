import { s3Credentials, startS3, type S3FaultKind } from "../helpers/s3.ts";

/** A store in a process of its own, which the proof disturbs with messages. */
export interface StoreWeather {
  /** The longest delay of a call; each waits for a random part of it. */
  delayMsMax: number;
  /** Of a hundred calls, how many get a fault. */
  faultPercent: number;
  /** Connections are refused. */
  isAway: boolean;
}

export const calm: StoreWeather = { delayMsMax: 0, faultPercent: 0, isAway: false };

if (import.meta.main) {
  const store = await startS3();
  let weather = calm;
  const faults: readonly S3FaultKind[] = ["slowDown", "reset", "lost", "conflict"];
  store.disturb = ({ method }) => {
    const kinds = method === "GET" ? ([...faults, "cut"] as const) : faults;
    return {
      delayMs: Math.random() * weather.delayMsMax,
      ...(Math.random() * 100 < weather.faultPercent
        ? { fault: kinds[Math.floor(Math.random() * kinds.length)]! }
        : {}),
    };
  };
  process.on("message", (next: StoreWeather) => {
    const wasAway = weather.isAway;
    weather = next;
    const change = next.isAway === wasAway ? Promise.resolve() : next.isAway ? store.stop() : store.start();
    void change.then(() => process.send!("done"));
  });
  process.on("disconnect", () => process.exit(0));
  process.send!({ url: store.url, ...s3Credentials });
}

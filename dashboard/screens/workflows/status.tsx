import { State, type Tone } from "../../parts/layout.tsx";
import type { Status } from "./workflow.ts";

const tones: Record<Status, Tone> = {
  queued: "info",
  running: "info",
  waiting: "info",
  waitingForPause: "warn",
  paused: "warn",
  complete: "ok",
  errored: "bad",
  terminated: "off",
  rollingBack: "warn",
};

/** The status of an instance. */
export const InstanceStatus = ({ status }: { status: Status }) => (
  <State tone={tones[status]}>{status}</State>
);

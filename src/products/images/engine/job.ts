import type { Focus, Probe } from "../image.ts";
import type { Transform } from "../recipe/options.ts";
import type { Output } from "../recipe/recipe.ts";

/** Draws one picture onto another. */
export interface DrawOptions {
  top?: number;
  left?: number;
  bottom?: number;
  right?: number;
  opacity?: number;
  repeat?: true | "x" | "y";
  composite?: "over" | "in" | "atop" | "out" | "xor" | "lighter";
}

export type TransformStep =
  | { kind: "transform"; transform: Transform }
  | { kind: "draw"; overlay: Picture; options: DrawOptions };

/** A file and the steps to apply. */
export interface Picture {
  path: string;
  /** An upright intermediate copy from which the pixels are read; metadata comes from the file itself. */
  intermediateCopy?: string | undefined;
  probe: Probe;
  steps: TransformStep[];
  /** The focus for content-based crops, when it is known already. */
  focus: Focus | null;
}

export interface ImageJob {
  picture: Picture;
  output: Output;
  timeLimitSeconds: number;
  /** Path for the result. Without one, or when it cannot be written, the result is returned as bytes. */
  target: string | undefined;
}

export interface ImageResult {
  /** Undefined when the target holds the bytes. */
  bytes: Uint8Array | undefined;
  sizeBytes: number;
  width: number;
  height: number;
  /** The focus found by this job, in fractions of the upright image. */
  focus: Focus | null;
}

/** How long a job waited until it was admitted, and how long the image process took, in milliseconds. */
export interface JobTimes {
  queuedMs: number;
  workedMs: number;
}
/** A result with the times of its job; those of its last attempt, if a process ended during the job. */
export type TimedResult = ImageResult & { times: JobTimes };

/** Messages between the image process and its parent. */
export type Request = { id: number; job: ImageJob };
export type ImageReply =
  | { id: number; result: ImageResult }
  /**
   * `undecodable`: the source is damaged; `invalid`: the options do not fit it; `time`: over the limit; `gone`: a file does not exist; `internal`: everything else. Only the message of `invalid` is meant for callers.
   */
  | {
      id: number;
      fault: { kind: "undecodable" | "invalid" | "time" | "gone" | "internal"; message: string };
    };

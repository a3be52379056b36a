import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiFailure, perform, type Call } from "../../core/client.ts";
import { RunRing, type Received } from "./run-ring.ts";
import type { RunFilter } from "./run.ts";

/** A live log: the runs that match, and the state of its connection. */
export interface LiveTail {
  runs: readonly Received[];
  received: number;
  state: "opening" | "open" | "lost";
  /** The time of the loss, in milliseconds. */
  lostAt: number | undefined;
  failure: ApiFailure | undefined;
  clear: () => void;
  retry: () => void;
}

const retryMs = 2000;

type Connection = Pick<LiveTail, "state" | "lostAt" | "failure">;
const opening: Connection = { state: "opening", lostAt: undefined, failure: undefined };

/** Follows the events of a tail. `call` creates the tail; a lost one is created again. */
export function useTail(call: Call, filter: RunFilter): LiveTail {
  const key = JSON.stringify([call.op, call.params]);
  const ring = useMemo(() => new RunRing(), [key]);
  const [, setTurn] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const [connection, setConnection] = useState<Connection>(opening);
  const frame = useRef<number | undefined>(undefined);
  // Renders once per frame, with all runs received since the last one.
  const paint = (): void => {
    frame.current ??= requestAnimationFrame(() => {
      frame.current = undefined;
      setTurn((turn) => turn + 1);
    });
  };
  useMemo(() => ring.setFilter(filter), [ring, JSON.stringify(filter)]);
  useEffect(() => {
    setConnection((before) => (before.state === "lost" ? before : opening));
    return follow(call, {
      receive(text) {
        ring.add(text);
        paint();
      },
      change: setConnection,
      again: () => setAttempt((each) => each + 1),
    });
  }, [key, JSON.stringify(call.body), attempt]);
  return {
    ...connection,
    runs: ring.shown,
    received: ring.received,
    clear() {
      ring.clear();
      setTurn((turn) => turn + 1);
    },
    retry: () => setAttempt((each) => each + 1),
  };
}

interface Follower {
  receive: (text: string) => void;
  change: (connection: Connection) => void;
  again: () => void;
}

/** Makes a tail and reads it. The result ends it. */
function follow(call: Call, { receive, change, again }: Follower): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  const lose = (): void => {
    if (signal.aborted) return;
    change({ state: "lost", lostAt: Date.now(), failure: undefined });
    const timer = setTimeout(again, retryMs);
    signal.addEventListener("abort", () => clearTimeout(timer));
  };
  perform<{ url: string }>(call, signal).then(
    ({ result }) => {
      if (signal.aborted) return;
      const socket = new WebSocket(ownAddress(result.url), "trace-v1");
      signal.addEventListener("abort", () => socket.close());
      socket.addEventListener("open", () => change({ state: "open", lostAt: undefined, failure: undefined }));
      socket.addEventListener("message", ({ data }) => {
        if (!signal.aborted) receive(data as string);
      });
      socket.addEventListener("close", lose);
    },
    (error: unknown) => {
      if (signal.aborted) return;
      if (error instanceof ApiFailure && error.status > 0)
        change({ state: "lost", lostAt: undefined, failure: error });
      else lose();
    },
  );
  return () => controller.abort();
}

/** The URL of the WebSocket at this page's origin, because a proxy in front of the server may terminate TLS. */
function ownAddress(url: string): string {
  const { pathname, search } = new URL(url);
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${pathname}${search}`;
}

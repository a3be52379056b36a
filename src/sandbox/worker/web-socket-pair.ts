/* Saved before lockdown-snippet.ts removes it: the channel needs it. */
const NativeWebSocketPair = WebSocketPair;
const { accept, addEventListener, send } = WebSocket.prototype;
const { apply } = Reflect;

/** Creates a WebSocket pair: one end to return, and a function that sends on the other. */
export function socketPair(onMessage: (data: string) => void): {
  theirs: WebSocket;
  sendOurs: (message: string | ArrayBuffer) => void;
} {
  const { 0: theirs, 1: ours } = new NativeWebSocketPair();
  apply(accept, ours, []);
  apply(addEventListener, ours, [
    "message",
    ({ data }: MessageEvent) => {
      onMessage(data as string);
    },
  ]);
  return { theirs, sendOurs: send.bind(ours) as (message: string | ArrayBuffer) => void };
}

/* Taken before it is taken away: a channel needs it, a snippet does not have it. */
const NativeWebSocketPair = WebSocketPair;
const { accept, addEventListener, send } = WebSocket.prototype;
const { apply } = Reflect;

/** Two ends of a WebSocket: one to be handed out, and what sends on the other. */
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

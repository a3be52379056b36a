/** The look of a message that was composed wrongly. Values as received, after "received", may look like anything. */
const holes = [
  / {2}/,
  /^\s|\s$/,
  /\b(undefined|NaN|Infinity)\b/,
  /\[object /,
  /Invalid input/,
  /(?<!\\|\[|\b(received|field|one of|id|key|name|pattern) )(""|''|\(\))/,
  /, ,|,$|:$|(?<![\w.])(but received|Expected|for|of|with|in|is|by|and|or)[.,]?$/,
  /(?<![\w.])(Expected|of|for|in|but|the) (but|for|,|;|\.)(\s|$)/i,
];

/** The part of a message that has a hole in it; undefined when it reads well. */
export function holeIn(message: string): string | undefined {
  const ours = message
    .replace(/\bbut received .+$/s, "but received something")
    // Quoted names come from callers, and may look like anything.
    .replace(/"(?!\[object )(?:[^"\\]|\\.)+"/g, '"name"')
    .replace(/\n.*\n *\^+ /g, " here, "); // an expression with the place of its error under it
  return holes.map((hole) => hole.exec(ours)?.[0]).find((found) => found !== undefined);
}

interface Envelope {
  errors?: { message?: unknown; error_chain?: { message: string }[] }[];
  messages?: { message?: unknown }[];
}

/** Reads every message of an answer, and throws when one has a hole. */
export async function readMessages(response: Response): Promise<Response> {
  if (!(response.headers.get("content-type") ?? "").includes("json")) return response;
  const body = (await response
    .clone()
    .json()
    .catch(() => null)) as Envelope | null;
  const entries = [body?.errors ?? [], body?.messages ?? []].flatMap((list) =>
    Array.isArray(list) ? list : [],
  );
  for (const { message } of entries) {
    if (typeof message !== "string") continue;
    const hole = holeIn(message);
    if (hole !== undefined) throw new Error(`A message has a hole, ${JSON.stringify(hole)}: ${message}`);
  }
  return response;
}

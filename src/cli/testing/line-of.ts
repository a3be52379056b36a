/** One token of a JSON text. */
const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/y;

/** The line of the value at a path in a JSON text; of the nearest value above it, if there is none. The text is valid. */
export function lineOf(text: string, path: readonly (string | number)[]): number {
  const tokens = tokensOf(text);
  let at = 0;
  for (const step of path) {
    const next = childAt(tokens, at, step);
    if (next === undefined) break;
    at = next;
  }
  return text.slice(0, tokens[at]?.offset ?? 0).split("\n").length;
}

interface Token {
  text: string;
  offset: number;
}

function tokensOf(text: string): Token[] {
  const found: Token[] = [];
  for (let offset = 0; offset < text.length;) {
    token.lastIndex = offset;
    const [matched] = token.exec(text) ?? [];
    if (matched !== undefined) found.push({ text: matched, offset });
    offset += matched?.length ?? 1;
  }
  return found;
}

/** The index of the first token of a child's value. */
function childAt(tokens: readonly Token[], parent: number, step: string | number): number | undefined {
  const isArray = tokens[parent]?.text === "[";
  let at = parent + 1;
  for (let index = 0; at < tokens.length && !/^[\]}]$/.test(tokens[at]!.text); index++) {
    const name = isArray ? index : (JSON.parse(tokens[at]!.text) as string);
    if (!isArray) at += 2; // the name and the colon
    if (name === step) return at;
    at = endOf(tokens, at);
    if (tokens[at]?.text === ",") at++;
  }
  return undefined;
}

/** The index after a value. */
function endOf(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at++) {
    const { text } = tokens[at]!;
    if (text === "{" || text === "[") depth++;
    if (text === "}" || text === "]") depth--;
    if (depth === 0) return at + 1;
  }
  return tokens.length;
}

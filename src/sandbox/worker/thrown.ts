/** A thrown value as text. */
export interface ThrownText {
  name: string;
  message: string;
  stack: string;
}

// Saved before the script's code is loaded, because a script may replace them.
const [NativeError, text] = [Error, String];
const { apply } = Reflect;
const { slice, toWellFormed } = String.prototype;

/** Maximum lengths in characters. */
export const errorLengths = { name: 256, message: 8 * 1024, stack: 16 * 1024 };

/**
 * Describes any thrown value in well-formed text of bounded length. Never throws, even if the value is a
 * proxy, has getters that throw, or cannot be converted to text.
 */
export function thrownText(thrown: unknown): ThrownText {
  const error = thrown as Partial<Error>;
  if (!isError(thrown))
    return {
      name: "Error",
      message: read(() => thrown, errorLengths.message, "a value that cannot be shown was thrown"),
      stack: "",
    };
  return {
    name: read(() => error.name, errorLengths.name, "Error"),
    message: read(() => error.message, errorLengths.message, "an error that cannot be shown was thrown"),
    stack: read(() => error.stack ?? "", errorLengths.stack, ""),
  };
}

function isError(thrown: unknown): boolean {
  try {
    return thrown instanceof NativeError;
  } catch {
    return false;
  }
}

function read(value: () => unknown, charactersMax: number, otherwise: string): string {
  try {
    const whole = text(value());
    const cut =
      whole.length > charactersMax ? (apply(slice, whole, [0, charactersMax - 1]) as string) : whole;
    return apply(toWellFormed, cut === whole ? whole : `${cut}…`, []) as string;
  } catch {
    return otherwise;
  }
}

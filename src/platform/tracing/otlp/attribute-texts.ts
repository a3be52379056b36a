import type { AttributeValue } from "../spans/span.ts";

/** A limit, because visitors choose paths and names of user agents. */
const textLengthMax = 1024;

interface Known {
  /** The text before the value. */
  beginning: string;
  value: AttributeValue | undefined;
  text: string;
}

/**
 * Returns a function that writes attributes. It keeps the beginning of each name, and the text of its last value, which
 * many spans share. There are few names: those of the program and of settings.
 */
export function attributeTexts(
  beginningOf: (name: string) => string,
  write: (beginning: string, value: AttributeValue) => string,
): (name: string, value: AttributeValue) => string {
  const names = new Map<string, Known>();
  return (name, value) => {
    let known = names.get(name);
    if (known === undefined)
      names.set(name, (known = { beginning: beginningOf(name), value: undefined, text: "" }));
    if (known.value !== value) {
      const isLong = typeof value === "string" && value.length > textLengthMax;
      known.text = write(known.beginning, isLong ? value.slice(0, textLengthMax) : value);
      known.value = value;
    }
    return known.text;
  };
}

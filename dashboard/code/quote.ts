/** A text as one word of a shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A text as one word of a shell, without quotes where it needs none. */
export const word = (text: string): string => (/^[\w.@][\w.@-]*$/.test(text) ? text : quote(text));

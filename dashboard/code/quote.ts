/** Quotes a text as one word of a POSIX shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The same, without quotes if the text needs none. */
export const word = (text: string): string => (/^[\w.@][\w.@-]*$/.test(text) ? text : quote(text));

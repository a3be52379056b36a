/**
 * Characters that a terminal obeys instead of showing them, or that change the order of others or cannot be seen. The line break
 * and the tab are not among them.
 */
const controls = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}]/u;
const allControls = new RegExp(controls.source, "gu");

const codeOf = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Text for a terminal or a log: control characters are written as JSON escapes, so JSON keeps its meaning. */
export const escapeControls = (text: string): string =>
  controls.test(text)
    ? text.replace(allControls, (character) => character.split("").map(codeOf).join(""))
    : text;

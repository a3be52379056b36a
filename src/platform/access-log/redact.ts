import { isSecretName } from "./declaration.ts";

const redacted = "REDACTED";

/**
 * A path or URL without credentials. User names and passwords become `REDACTED`, as do the values of query
 * parameters with secret names. The fragment, which may hold a token, is left out.
 */
export function withoutSecrets(url: string): string {
  const fragment = url.indexOf("#");
  const whole = fragment < 0 ? url : url.slice(0, fragment);
  const shown = whole.includes("@") ? whole.replace(userInfo, `$1${redacted}@`) : whole;
  const question = shown.indexOf("?");
  if (question < 0 || !shown.includes("=", question)) return shown;
  return shown.slice(0, question + 1) + shown.slice(question + 1).replace(parameter, shownParameter);
}

const userInfo = /^((?:[a-z][a-z\d+.-]*:)?\/\/)[^/?#]*@/i;
/** Name and value together: a search for a name with "=" would begin again at each character of a name without. */
const parameter = /[^&;]+/g;

function shownParameter(text: string): string {
  const start = text.search(/[^=]/);
  const end = start < 0 ? -1 : text.indexOf("=", start);
  if (end < 0) return text;
  return isSecretName(decoded(text.slice(start, end))) ? `${text.slice(0, end)}=${redacted}` : text;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll("+", " "));
  } catch {
    return name; // an invalid escape, which servers decode in different ways
  }
}

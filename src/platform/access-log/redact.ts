import { isSecretName } from "./declaration.ts";

const redacted = "REDACTED";

/**
 * A path or URL without credentials. User names and passwords become `REDACTED`, as do the values of query
 * parameters with secret names, and secrets in paths of the platform. The fragment, which may hold a token, is left out.
 */
export function withoutSecrets(url: string): string {
  const fragment = url.indexOf("#");
  const whole = fragment < 0 ? url : url.slice(0, fragment);
  const shown = whole.includes("@") ? whole.replace(userInfo, `$1${redacted}@`) : whole;
  const question = shown.indexOf("?");
  if (question < 0) return shownPath(shown);
  const path = shownPath(shown.slice(0, question));
  const query = shown.slice(question + 1);
  return `${path}?${query.includes("=") ? query.replace(parameter, shownParameter) : query}`;
}

/**
 * Folders whose names of 32 characters are secrets: of images' `uploadURL`s and of live logs. They stay usable after a refused
 * request, and when a browser only asks whether it may upload.
 */
const secretFolder = /\/(?:upload|tails\/[0-9a-f]{32})$/;
const secretFolderLengthMax = "/tails/".length + 32;
const secretPart = /^[\w-]{32}$/;
const secretLength = 32;

function shownPath(path: string): string {
  const last = path.lastIndexOf("/");
  if (path.length - last - 1 !== secretLength) return path;
  const folder = path.slice(Math.max(0, last - secretFolderLengthMax), last);
  if (!secretFolder.test(folder) || !secretPart.test(path.slice(last + 1))) return path;
  return `${path.slice(0, last + 1)}${redacted}`;
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

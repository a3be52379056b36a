import { parseOptions, type Transform } from "../recipe/options.ts";
import { transformationErrors } from "./errors.ts";

export const transformationPrefix = "/cdn-cgi/image/";

/** A parsed path under `/cdn-cgi/image/`. */
export interface TransformationRequest {
  transform: Transform;
  /** The URL of the picture: on the visitor's own host, unless the path names another. */
  source: URL;
  /** Whether the visitor is redirected to the source when the transform fails. */
  redirectsOnError: boolean;
}

const optionsCharactersMax = 2048;
const sourceCharactersMax = 4096;

/**
 * Parses `/cdn-cgi/image/<options>/<source>`; the query belongs to the source. `base` is the visitor's scheme
 * and host. Throws a DomainError for any other form.
 */
export function parseTransformation(path: string, base: string): TransformationRequest {
  const slash = path.indexOf("/", transformationPrefix.length);
  if (slash < 0 || slash === path.length - 1) throw transformationErrors.noSource();
  const options = path.slice(transformationPrefix.length, slash);
  if (!options.includes("=") || options.length > optionsCharactersMax) throw transformationErrors.noSource();
  return {
    transform: parseOptions(options),
    source: sourceUrl(path.slice(slash + 1), base),
    redirectsOnError: asksForRedirect(options),
  };
}

/** Also for invalid options, so that the page still shows its picture. */
export const asksForRedirect = (options: string): boolean =>
  /(?:^|,|%2c)onerror(?:=|%3d)redirect(?:$|,|%2c)/i.test(options);

/**
 * An absolute URL, even when a proxy merged or escaped its slashes; otherwise a path on the visitor's host.
 */
export function sourceUrl(text: string, base: string): URL {
  if (text.length > sourceCharactersMax)
    throw transformationErrors.invalidUrl(`it has more than ${sourceCharactersMax} characters`);
  const isEscaped = /^https?%3a/i.test(text);
  const absolute = /^https?:\/+/i.exec(isEscaped ? unescaped(text) : text);
  const given = isEscaped ? unescaped(text) : text;
  const address =
    absolute === null
      ? `${base}/${given.replace(/^\/+/, "")}`
      : `${absolute[0].replace(/(?<!\/)\/+$/, "")}//${given.slice(absolute[0].length)}`;
  if (!URL.canParse(address)) throw transformationErrors.invalidUrl("it cannot be parsed");
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw transformationErrors.invalidUrl("expected http or https");
  if (url.username !== "" || url.password !== "")
    throw transformationErrors.invalidUrl("it has a user name or a password");
  if (url.pathname.startsWith(transformationPrefix)) throw transformationErrors.loop();
  url.hash = "";
  return url;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw transformationErrors.invalidUrl("it has an invalid % escape");
  }
}

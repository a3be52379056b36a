import { useAsync } from "../../core/async.ts";
import type { Query } from "../../core/cache.ts";
import { answerOf, send } from "../../core/client.ts";

/** A module of a script. One that is not text has no `text`. */
export interface Module {
  name: string;
  file: File;
  text: string | undefined;
}

export interface Code {
  main: string;
  modules: Module[];
  /** The tag of this code, for If-Match. */
  etag: string | undefined;
}

const isText = (type: string): boolean => /javascript|json|text|python/.test(type);

/** Reads the modules of a version over the API. An empty `version` is the one that runs now. */
export async function readCode(path: string, version: string, signal: AbortSignal): Promise<Code> {
  const query = version === "" ? "" : `?version=${encodeURIComponent(version)}`;
  const response = await send(`${path}${query}`, { signal });
  if (!response.ok) await answerOf(response);
  const main = response.headers.get("cf-entrypoint") ?? "";
  const form = await response.formData();
  const modules = [...form].map(async ([part, value]): Promise<Module> => {
    const file = typeof value === "string" ? new File([value], part, { type: "text/plain" }) : value;
    return { name: part, file, text: isText(file.type) ? await file.text() : undefined };
  });
  return { main, modules: await Promise.all(modules), etag: response.headers.get("etag") ?? undefined };
}

/** The code of a script or snippet at a path. An empty `version` is the one that runs now. No path: no call. */
export const useCode = (path: string | undefined, version = ""): Query<Code> =>
  useAsync(path && `${path} ${version}`, (signal) => readCode(path!, version, signal));

/** The form of an upload: the modules as they were, with new text in some. */
export function uploadOf(
  code: Code,
  texts: Readonly<Record<string, string>>,
  metadata: object = {},
): FormData {
  const form = new FormData();
  form.set("metadata", JSON.stringify({ main_module: code.main, ...metadata }));
  for (const { name, file } of code.modules) {
    const text = texts[name];
    form.set(name, text === undefined ? file : new File([text], name, { type: file.type }));
  }
  return form;
}

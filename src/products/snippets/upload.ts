import { z } from "zod";
import { DomainErrors, type DomainError } from "../../platform/domain-error.ts";
import type { UploadForm } from "../../control/api/upload-form.ts";
import { validate } from "../../control/api/validation.ts";
import { checkModule, moduleFaultText } from "./check-module.ts";
import { snippetErrors } from "./errors.ts";
import type { SnippetModule } from "./snippet.ts";

export interface SnippetUpload {
  mainModule: string;
  modules: SnippetModule[];
}

export const SnippetMetadataSchema = z.strictObject({ main_module: z.string().min(1).max(255) });

/** Content types of JavaScript. curl derives the type from the file extension, or sends none. */
const codeTypes =
  /^(application\/(x-)?javascript(\+module)?|text\/(x-)?javascript(\+module)?|application\/octet-stream|text\/plain)$/i;
const fileNamePattern = /^[\w.@$ /-]{1,255}$/;

/** Reads the code of an upload, and refuses code that cannot run as a snippet. */
export async function readSnippetUpload(
  form: UploadForm,
  limits: { codeBytesMax: number },
): Promise<SnippetUpload> {
  const { main_module: mainModule } = validate(SnippetMetadataSchema, form.metadata, "metadata");
  const bytes = form.files.reduce((sum, file) => sum + file.bytes.length, 0);
  if (bytes > limits.codeBytesMax) throw snippetErrors.tooLarge(bytes, limits.codeBytesMax);

  const modules: SnippetModule[] = [];
  const faults: DomainError[] = [];
  for (const file of form.files) {
    const { name } = file;
    const content = textOf(file.bytes);
    const fault =
      fileFault(file) ??
      (modules.some((module) => module.name === name) ? "the form has two files of this name" : undefined) ??
      (content === undefined ? "expected UTF-8 text" : await codeFault(content, name === mainModule));
    if (fault === undefined) modules.push({ name, content: content! });
    else faults.push(snippetErrors.badFile(name, fault));
  }
  if (faults.length > 0) throw new DomainErrors(faults);
  if (!modules.some((module) => module.name === mainModule)) {
    throw snippetErrors.noMainModule(
      mainModule,
      modules.map((module) => module.name),
    );
  }
  return { mainModule, modules };
}

function fileFault({ name, contentType }: UploadForm["files"][number]): string | undefined {
  if (!fileNamePattern.test(name)) return "expected a file name of letters, digits and . - _ @ $ /";
  const type = contentType?.split(";", 1)[0]!.trim() ?? "text/plain";
  return codeTypes.test(type) ? undefined : `expected a JavaScript module but received ${type}`;
}

async function codeFault(code: string, isMain: boolean): Promise<string | undefined> {
  const fault = await checkModule(code, { isMain });
  return fault && moduleFaultText(code, fault);
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

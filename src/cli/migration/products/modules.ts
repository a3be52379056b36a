import { z } from "zod";
import type { ApiResponse } from "../account/client.ts";
import { bytesOf, BytesSchema, describeBytes } from "../bytes.ts";

/** One file of a script or snippet. */
export const ModuleSchema = z.object({
  name: z.string().min(1).max(1024),
  content_type: z.string().max(100),
  content: BytesSchema,
});
export type DescribedModule = z.output<typeof ModuleSchema>;

/** The files in an answer: the parts of a form, or the whole body as one file. */
export async function modulesIn({ body, contentType }: ApiResponse): Promise<DescribedModule[]> {
  if (!contentType.startsWith("multipart/form-data"))
    return [{ name: "worker.js", content_type: "application/javascript", content: describeBytes(body) }];
  const headers = { "content-type": contentType };
  const form = await new Response(Buffer.from(body), { headers }).formData();
  const modules: DescribedModule[] = [];
  for (const [part, value] of form as unknown as Iterable<[string, string | File]>) {
    if (typeof value === "string")
      modules.push({ name: part, content_type: "application/javascript+module", content: { text: value } });
    else
      modules.push({
        name: value.name,
        content_type: value.type || "application/javascript+module",
        content: describeBytes(new Uint8Array(await value.arrayBuffer())),
      });
  }
  return modules.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The form of an upload. */
export function uploadOf(metadata: object, modules: readonly DescribedModule[]): FormData {
  const form = new FormData();
  form.set("metadata", JSON.stringify(metadata));
  for (const { name, content_type: type, content } of modules)
    form.append(name, new File([bytesOf(content)], name, { type }));
  return form;
}

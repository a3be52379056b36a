import { z } from "zod";
import { sensitive } from "../../control/api/sensitive.ts";
import { CompatibilityDate, CompatibilityFlags, LimitsSchema } from "../scripts/versions/metadata.ts";
import { previewLimits } from "./limits.ts";

const { headersMax, headerBytesMax, requestBodyBytesMax, timeoutMsMin, timeoutMsMax, timeoutMsDefault } =
  previewLimits;

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
const urlLengthMax = 8192;
const listedMax = 1000;

const headerName = z
  .string()
  .max(256)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: "an HTTP token" });
const headerValue = z
  .string()
  .max(headerBytesMax)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, { error: "a text in one line of Latin-1 characters" });
const bytesOf = (headers: Record<string, string>): number =>
  Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);

/** The request that the code gets. */
export const AskedSchema = z
  .strictObject({
    method: z
      .string()
      .max(16)
      .transform((method) => method.toUpperCase())
      .pipe(z.enum(methods))
      .default("GET"),
    url: z
      .url({ protocol: /^https?$/, error: "an http or https URL" })
      .max(urlLengthMax)
      .meta({ description: "The URL that the code sees. Its host is not looked up" }),
    headers: sensitive(
      z
        .record(headerName, headerValue)
        .refine((given) => Object.keys(given).length <= headersMax, `at most ${headersMax} headers`)
        .refine((given) => bytesOf(given) <= headerBytesMax, `at most ${headerBytesMax} bytes of headers`),
    ).optional(),
    body: sensitive(
      z
        .strictObject({
          base64: z
            .base64()
            .max(Math.ceil(requestBodyBytesMax / 3) * 4)
            .optional(),
          plain_text: z.string().max(requestBodyBytesMax).optional(),
        })
        .refine((given) => Object.keys(given).length === 1, "either base64 or plain_text"),
    ).optional(),
  })
  .meta({ id: "ScriptPreviewRequest" });
export type Asked = z.output<typeof AskedSchema>;

/** Form fields are text. */
const milliseconds = z.coerce.number().int();

/** As the metadata of an upload, as far as it concerns one run, with the request. Absent fields are those of the script. */
export const PreviewMetadataSchema = z
  .strictObject({
    main_module: z.string().min(1).max(1024).optional(),
    body_part: z.string().max(1024).optional(),
    bindings: z.array(z.unknown()).max(listedMax).optional(),
    keep_bindings: z.array(z.string()).max(listedMax).optional(),
    compatibility_date: CompatibilityDate.optional(),
    compatibility_flags: CompatibilityFlags.optional(),
    limits: LimitsSchema.optional(),
    request: AskedSchema,
    timeout_ms: milliseconds.min(timeoutMsMin).max(timeoutMsMax).default(timeoutMsDefault).meta({
      description: "Time after which the run is ended, with the work that it passed to waitUntil",
    }),
  })
  .meta({ id: "ScriptPreviewMetadata" });
export type PreviewMetadata = z.output<typeof PreviewMetadataSchema>;

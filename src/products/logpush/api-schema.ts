import { z } from "zod";
import { sensitive } from "../../control/api/sensitive.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { destinationLengthMax, shownDestination } from "./destination/destination.ts";
import { fieldsMax, timestampFormats, type LogpushJob } from "./job.ts";

const text = (max: number) => z.string().max(max).nullish();
const textMax = 1024;

export const OutputSchema = z.strictObject({
  field_names: z.array(z.string().min(1).max(64)).max(fieldsMax).optional(),
  timestamp_format: z.enum(timestampFormats).optional(),
  sample_rate: z.number().gt(0).max(1).nullish(),
  output_type: z.enum(["ndjson", "csv"]).optional(),
  batch_prefix: text(textMax),
  batch_suffix: text(textMax),
  record_prefix: text(textMax),
  record_suffix: text(textMax),
  record_delimiter: text(textMax),
  record_template: text(16_384),
  field_delimiter: text(textMax),
  merge_subrequests: z.boolean().nullish(),
  "CVE-2021-44228": z.boolean().nullish(),
});
export type OutputBody = z.output<typeof OutputSchema>;

/** 0, or a value within bounds. */
const limit = (min: number, max: number) =>
  z
    .int()
    .refine((value) => value === 0 || (value >= min && value <= max), {
      error: `0, or a number from ${min} to ${max}`,
    })
    .nullish();

const changeable = {
  name: text(512),
  dataset: z.string().max(64).nullish(),
  enabled: z.boolean().optional(),
  filter: text(16_384),
  filter_attack_traffic: z.boolean().optional(),
  frequency: z.enum(["high", "low"]).nullish(),
  kind: z.enum(["", "edge"]).optional(),
  logpull_options: text(16_384),
  max_upload_bytes: limit(5_000_000, 1_000_000_000),
  max_upload_interval_seconds: limit(30, 300),
  max_upload_records: limit(1000, 1_000_000),
  output_options: OutputSchema.nullish(),
  ownership_challenge: sensitive(z.string().max(512)).nullish(),
  // Computed fields, which clients send back unchanged.
  id: z.int().optional(),
  error_message: text(4096),
  last_complete: text(64),
  last_error: text(64),
};
export const DestinationSchema = sensitive(z.string().min(1).max(destinationLengthMax));

export const ChangeSchema = z.strictObject({ ...changeable, destination_conf: DestinationSchema.optional() });
export const CreateSchema = z.strictObject({ ...changeable, destination_conf: DestinationSchema });
export type ChangeBody = z.output<typeof ChangeSchema>;

const time = z.string().nullable().meta({ format: "date-time" });
export const JobSchema = z
  .object({
    id: z.int(),
    dataset: z.string(),
    destination_conf: z.string().meta({ description: "without credentials" }),
    enabled: z.boolean(),
    error_message: z.string().nullable(),
    filter: z.string().nullable(),
    frequency: z.enum(["high", "low"]),
    kind: z.literal(""),
    last_complete: time,
    last_error: time,
    logpull_options: z.null(),
    max_upload_bytes: z.int(),
    max_upload_interval_seconds: z.int(),
    max_upload_records: z.int(),
    name: z.string(),
    output_options: z.object({
      field_names: z.array(z.string()),
      timestamp_format: z.enum(timestampFormats),
      sample_rate: z.number(),
      output_type: z.literal("ndjson"),
      batch_prefix: z.string(),
      batch_suffix: z.string(),
      record_prefix: z.string(),
      record_suffix: z.string(),
      record_delimiter: z.string(),
      field_delimiter: z.string(),
      "CVE-2021-44228": z.boolean(),
    }),
  })
  .meta({ id: "LogpushJob" });

const timeOf = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

export const jobResource = (job: LogpushJob): z.input<typeof JobSchema> => ({
  id: job.id,
  dataset: job.dataSet,
  destination_conf: shownDestination(job.destination),
  enabled: job.isEnabled,
  error_message: job.errorMessage,
  filter: job.filter ?? null,
  frequency: job.frequency,
  kind: "",
  last_complete: timeOf(job.lastComplete),
  last_error: timeOf(job.lastError),
  logpull_options: null,
  max_upload_bytes: job.uploadBytesMax,
  max_upload_interval_seconds: job.uploadIntervalSeconds,
  max_upload_records: job.uploadRecordsMax,
  name: job.name,
  output_options: {
    field_names: [...job.output.fieldNames],
    timestamp_format: job.output.timestampFormat,
    sample_rate: job.output.sampleRate,
    output_type: "ndjson",
    batch_prefix: job.output.batchPrefix,
    batch_suffix: job.output.batchSuffix,
    record_prefix: job.output.recordPrefix,
    record_suffix: job.output.recordSuffix,
    record_delimiter: job.output.recordDelimiter,
    field_delimiter: job.output.fieldDelimiter,
    "CVE-2021-44228": job.output.hidesLookups,
  },
});

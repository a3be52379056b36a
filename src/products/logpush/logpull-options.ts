import { z } from "zod";
import { show } from "../../platform/util/json.ts";
import { OutputSchema, type OutputBody } from "./api-schema.ts";
import { logpushErrors } from "./errors.ts";

/** Reads the older form of output options: `fields=A,B&timestamps=rfc3339&sample=0.1`. Throws a domain error. */
export function readLogpullOptions(text: string): OutputBody {
  const query = text.includes("?") ? text.slice(text.indexOf("?") + 1) : text;
  const given: Record<string, unknown> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === "fields") given["field_names"] = value.split(",").filter((field) => field !== "");
    else if (name === "timestamps") given["timestamp_format"] = value;
    else if (name === "sample") given["sample_rate"] = Number(value);
    else if (name === "CVE-2021-44228") given[name] = value === "true";
    else
      throw logpushErrors.invalid(
        `Expected fields, timestamps, sample and CVE-2021-44228 in logpull_options but received ${show(name)}`,
        "/body/logpull_options",
      );
  }
  const read = OutputSchema.safeParse(given);
  if (read.success) return read.data;
  throw logpushErrors.invalid(
    `Expected valid values in logpull_options: ${z.prettifyError(read.error).split("\n")[0]}`,
    "/body/logpull_options",
  );
}

import type { WriteField } from "./data-sets/data-set.ts";
import type { ValueOf } from "./filter.ts";
import type { LogOutput } from "./job.ts";

export const ndjson = {
  recordPrefix: "{",
  recordSuffix: "}\n",
  recordDelimiter: "",
  fieldDelimiter: ",",
  batchPrefix: "",
  batchSuffix: "",
} as const satisfies Partial<LogOutput>;

/** Returns a function that writes an event as a record. A field that is not known is null. */
export function recordFormatter<Event>(
  output: Pick<LogOutput, "fieldNames" | "recordPrefix" | "recordSuffix" | "fieldDelimiter" | "hidesLookups">,
  writers: Readonly<Record<string, WriteField<Event>>>,
): (event: Event) => string {
  const { recordPrefix, recordSuffix, fieldDelimiter, hidesLookups } = output;
  const fields = output.fieldNames.map((name, index) => ({
    prefix: `${index === 0 ? recordPrefix : fieldDelimiter}${JSON.stringify(name)}:`,
    write: writers[name]!,
  }));
  return (event) => {
    let record = "";
    for (const { prefix, write } of fields) record += prefix + (write(event) ?? "null");
    if (hidesLookups && record.includes("${")) record = record.replaceAll("${", "x{");
    return record + recordSuffix;
  };
}

/** Reads the fields of an event for a filter, each once: several comparisons may read one. */
export function valuesOf<Event>(writers: Readonly<Record<string, WriteField<Event>>>, event: Event): ValueOf {
  const known = new Map<string, unknown>();
  return (field) => {
    let value = known.get(field);
    if (value === undefined) {
      const json = writers[field]!(event);
      known.set(field, (value = json === undefined ? null : (JSON.parse(json) as unknown)));
    }
    return value;
  };
}

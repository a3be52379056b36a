import { show, showList } from "../../platform/util/json.ts";
import type { ChangeBody, OutputBody } from "./api-schema.ts";
import type { DataSets } from "./data-sets/data-sets.ts";
import {
  DestinationFault,
  readDestination,
  shownDestination,
  type LogDestination,
} from "./destination/destination.ts";
import { logpushErrors } from "./errors.ts";
import { FilterFault, readFilter } from "./filter.ts";
import { dataSetNames, type DataSetName, type LogpushJob, type JobInput, type LogOutput } from "./job.ts";
import type { Scope } from "./logpush-services.ts";
import { readLogpullOptions } from "./logpull-options.ts";
import { ndjson } from "./record-format.ts";

/** The data set of a new job. Throws a domain error for those that this installation does not have. */
export function dataSetOf(name: string, scope: Scope, dataSets: DataSets): DataSetName {
  const known = dataSetNames.find((each) => each === name);
  if (known === undefined || dataSets[known].scope !== scope) throw logpushErrors.noDataSet(name, scope);
  return known;
}

/** The data set that a path names. Throws 404. */
export function dataSetInPath(name: string, scope: Scope, dataSets: DataSets): DataSetName {
  const known = dataSetNames.find((each) => each === name);
  if (known !== undefined && dataSets[known].scope === scope) return known;
  throw logpushErrors.noDataSetAt(name, scope);
}

/** The destination of a body. Throws a domain error. */
export function destinationOf(text: string): LogDestination {
  try {
    return readDestination(text);
  } catch (error) {
    if (error instanceof DestinationFault) throw logpushErrors.destination(error.message);
    throw error;
  }
}

/** The parts of a job after a change, or of a new one. Throws a domain error that names what is not supported. */
export function jobInput(body: ChangeBody, scope: Scope, dataSets: DataSets, before?: LogpushJob): JobInput {
  refuseUnsupported(body);
  const dataSet = before?.dataSet ?? dataSetOf(body.dataset ?? defaultDataSets[scope], scope, dataSets);
  if (before !== undefined && (body.dataset ?? dataSet) !== dataSet)
    throw logpushErrors.unsupported("Another dataset", `a job keeps its own, ${dataSet}`, "/body/dataset");
  const fields = Object.keys(dataSets[dataSet].descriptions);
  const filter = body.filter === undefined ? before?.filter : body.filter || undefined;
  if (filter !== undefined) checkFilter(filter, fields);
  return {
    dataSet,
    name: body.name === undefined ? (before?.name ?? "") : (body.name ?? ""),
    destination: destinationText(body.destination_conf, before),
    isEnabled: body.enabled ?? before?.isEnabled ?? false,
    output: outputOf(body, fields, before?.output),
    filter,
    frequency: body.frequency ?? before?.frequency ?? "high",
    uploadBytesMax: body.max_upload_bytes ?? before?.uploadBytesMax ?? 0,
    uploadRecordsMax: body.max_upload_records ?? before?.uploadRecordsMax ?? 0,
    uploadIntervalSeconds: body.max_upload_interval_seconds ?? before?.uploadIntervalSeconds ?? 0,
  };
}

const defaultDataSets: Record<Scope, string> = { zone: "http_requests", account: "" };

/** Keeps the credentials if a client sends back the destination with the hidden ones that it was shown. */
function destinationText(given: string | undefined, before: LogpushJob | undefined): string {
  if (before !== undefined && (given === undefined || given === shownDestination(before.destination)))
    return before.destination;
  destinationOf(given!);
  return given!;
}

function refuseUnsupported({ kind, filter_attack_traffic, output_options }: ChangeBody): void {
  const refuse = (field: string, why: string): never => {
    throw logpushErrors.unsupported(field, why, `/body/${field.replaceAll(".", "/")}`);
  };
  if (kind === "edge") refuse("kind", "jobs of the kind edge are not part of this installation");
  if (filter_attack_traffic === true)
    refuse("filter_attack_traffic", "this installation does not tell attacks apart");
  if (output_options?.output_type === "csv") refuse("output_options.output_type", "files are ndjson");
  if (output_options?.record_template)
    refuse("output_options.record_template", "a record is an object of its fields");
  if (output_options?.merge_subrequests === true)
    refuse("output_options.merge_subrequests", "each request has a record of its own");
}

function checkFilter(filter: string, fields: readonly string[]): void {
  try {
    readFilter(filter, fields);
  } catch (error) {
    if (error instanceof FilterFault)
      throw logpushErrors.invalid(`${error.message} for filter`, "/body/filter");
    throw error;
  }
}

/** New output options replace the previous ones as a whole. */
function outputOf(body: ChangeBody, fields: readonly string[], before: LogOutput | undefined): LogOutput {
  const { output_options: options, logpull_options: logpull } = body;
  if (options === undefined || options === null)
    return logpull ? readOutput(readLogpullOptions(logpull), fields) : (before ?? readOutput({}, fields));
  return readOutput(options, fields);
}

function readOutput(options: OutputBody, fields: readonly string[]): LogOutput {
  const names = options.field_names ?? [];
  const strange = names.find((name) => !fields.includes(name));
  if (strange !== undefined)
    throw logpushErrors.invalid(
      `Expected fields of the data set for field_names, which are ${showList(fields)}, but received ${show(strange)}`,
      "/body/output_options/field_names",
    );
  return {
    fieldNames: names.length === 0 ? fields : [...new Set(names)],
    timestampFormat: options.timestamp_format ?? "unixnano",
    sampleRate: options.sample_rate ?? 1,
    batchPrefix: options.batch_prefix ?? ndjson.batchPrefix,
    batchSuffix: options.batch_suffix ?? ndjson.batchSuffix,
    recordPrefix: options.record_prefix ?? ndjson.recordPrefix,
    recordSuffix: options.record_suffix ?? ndjson.recordSuffix,
    recordDelimiter: options.record_delimiter ?? ndjson.recordDelimiter,
    fieldDelimiter: options.field_delimiter ?? ndjson.fieldDelimiter,
    hidesLookups: options["CVE-2021-44228"] ?? false,
  };
}

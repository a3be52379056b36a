import { readFileSync } from "node:fs";

const types = ["counter", "gauge", "histogram", "timestamp"] as const;

/** A metric of ours, as docs/metrics.md lists it. A `timestamp` is a gauge with seconds since 1970. */
export interface ListedMetric {
  /** The heading of its table. */
  section: string;
  name: string;
  type: (typeof types)[number];
  labels: string[];
  meaning: string;
}

/** The metrics of docs/metrics.md, which is the list from which the board is made. */
export function listedMetrics(text = readFileSync("docs/metrics.md", "utf8")): ListedMetric[] {
  const listed: ListedMetric[] = [];
  let section = "";
  for (const line of text.split("\n")) {
    section = /^## (.*)$/.exec(line)?.[1] ?? section;
    const row = /^\| `(selvedge_\w+)` +\| (\w+) +\| (.*?) *\| (.*?) *\|$/.exec(line);
    if (row === null) continue;
    const [, name = "", typeName, labels = "", meaning = ""] = row;
    const type = types.find((each) => each === typeName);
    if (type === undefined)
      throw new Error(`Expected one of ${types.join(", ")} for ${name} in docs/metrics.md`);
    listed.push({
      section,
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label!),
      meaning: meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", ""),
    });
  }
  return listed;
}

import { Counter, Gauge } from "prom-client";

/** The prefix of the names of Selvedge's own metrics. */
export const metricPrefix = "selvedge_";

/** The value of one series: its labels, and a number. */
export type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number];
type Reading<T> = () => T | Promise<T>;

/** A gauge without labels, read at each scrape. It has no value while `value` returns undefined. */
export const gauge = (name: string, help: string, value: Reading<number | undefined>): Gauge =>
  new Gauge({
    name: metricPrefix + name,
    help,
    registers: [],
    async collect() {
      const now = await value();
      if (now === undefined) this.remove();
      else this.set(now);
    },
  });

/** A gauge with labels. Its series are those of the last scrape only. */
export const gauges = (
  name: string,
  help: string,
  labelNames: string[],
  samples: Reading<Iterable<Sample>>,
): Gauge =>
  new Gauge({
    name: metricPrefix + name,
    help,
    labelNames,
    registers: [],
    async collect() {
      const now = await samples();
      this.reset();
      for (const [labels, value] of now) this.inc(labels, value);
    },
  });

/** A counter without labels, whose count is kept elsewhere. */
export const counter = (name: string, help: string, value: Reading<number>): Counter =>
  counters(name, help, [], async () => [[{}, await value()]]);

/** A counter with labels, whose counts are kept elsewhere. Samples with the same labels are added up. */
export const counters = (
  name: string,
  help: string,
  labelNames: string[],
  samples: Reading<Iterable<Sample>>,
): Counter =>
  new Counter({
    name: metricPrefix + name,
    help,
    labelNames,
    registers: [],
    async collect() {
      const now = await samples();
      this.reset();
      for (const [labels, value] of now) this.inc(labels, value);
    },
  });

/** Samples of counts by one label. */
export const samplesBy = (label: string, counts: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(counts).map(([value, count]) => [{ [label]: value }, count]);

/*
 * A check for monitoring: prints the faults of a running platform, and exits with 1 if there are any.
 *
 *   node examples/operate/check.js [API] [METRICS]      http://127.0.0.1:8787 and http://127.0.0.1:9090 by default
 */
const [api = "http://127.0.0.1:8787", metrics = "http://127.0.0.1:9090"] = process.argv.slice(2);
const certificateDaysMin = 7;
const faults = [];

const readiness = await fetch(new URL("/readyz", api));
const { not_ready: parts = [] } = await readiness.json();
for (const part of parts) faults.push(`not ready: ${part}`);

const text = await (await fetch(new URL("/metrics", metrics))).text();
/** The samples of a metric: labels as text, and the value. */
const samples = (name) =>
  [...text.matchAll(new RegExp(`^${name}(?:{(.*)})? (\\S+)$`, "gm"))].map(([, labels = "", value]) => ({
    labels,
    value: Number(value),
  }));
for (const { labels, value } of samples("selvedge_uncaught_exceptions_total"))
  if (value > 0) faults.push(`uncaught exceptions (${labels}): ${value}`);
for (const { value } of samples("selvedge_certificate_packs_failing"))
  if (value > 0) faults.push(`certificate packs that fail: ${value}`);
for (const { labels, value } of samples("selvedge_certificate_expiry_timestamp_seconds")) {
  const days = Math.floor((value * 1000 - Date.now()) / 86_400_000);
  if (days < certificateDaysMin) faults.push(`a certificate expires in ${days} days: ${labels}`);
}

console.log(faults.length === 0 ? "ready, no faults" : faults.join("\n"));
process.exitCode = faults.length === 0 ? 0 : 1;

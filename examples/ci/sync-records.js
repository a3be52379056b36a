import Cloudflare from "cloudflare";

/**
 * The automation under test: makes the A records of a zone equal to `wanted`, an object of addresses by name.
 * Returns the numbers of records that it created, changed and deleted.
 */
export async function syncRecords(zoneId, wanted, client = new Cloudflare()) {
  const counts = { created: 0, changed: 0, deleted: 0 };
  const missing = new Map(Object.entries(wanted));
  const records = [];
  for await (const record of client.dns.records.list({ zone_id: zoneId, type: "A" })) records.push(record);
  for (const { id, name, content } of records) {
    const address = missing.get(name);
    missing.delete(name);
    if (address === undefined) {
      await client.dns.records.delete(id, { zone_id: zoneId });
      counts.deleted++;
    } else if (address !== content) {
      const record = { zone_id: zoneId, type: "A", name, content: address, ttl: 1 };
      await client.dns.records.update(id, record);
      counts.changed++;
    }
  }
  for (const [name, content] of missing) {
    await client.dns.records.create({ zone_id: zoneId, type: "A", name, content, ttl: 1 });
    counts.created++;
  }
  return counts;
}

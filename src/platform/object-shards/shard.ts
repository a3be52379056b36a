/** Number of shards that nodes divide the namespaces of objects into; migrations/0031-object-shards.ts creates them. */
export const shardCount = 64;

/** The shard of a namespace, whose id is random. */
export const shardOf = (namespace: string): number => parseInt(namespace.slice(0, 8), 16) % shardCount;

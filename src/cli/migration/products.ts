import type { Product } from "./product.ts";
import { database } from "./products/databases.ts";
import { dispatchNamespace, dispatchScript } from "./products/dispatch.ts";
import { dnsRecord, dnsSettings, dnssec } from "./products/dns.ts";
import { image, imageVariant } from "./products/images.ts";
import { kvNamespace, kvValue } from "./products/kv.ts";
import { queue, queueConsumer } from "./products/queues.ts";
import { ruleset } from "./products/rules.ts";
import { domain, route, script } from "./products/scripts.ts";
import { snippet, snippetRules } from "./products/snippets.ts";
import { workflow } from "./products/workflows.ts";
import { zone } from "./products/zone.ts";
import { zoneSetting } from "./products/zone-settings.ts";

/** All products, in the order in which they are written: each after those that it refers to. */
export const products: readonly Product[] = [
  zone,
  zoneSetting,
  dnsSettings,
  dnsRecord,
  dnssec,
  kvNamespace,
  kvValue,
  database,
  queue,
  imageVariant,
  image,
  dispatchNamespace,
  script,
  dispatchScript,
  workflow,
  queueConsumer,
  route,
  domain,
  ruleset,
  snippet,
  snippetRules,
];

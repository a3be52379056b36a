/** A DNS record as the API shows it; the fields that the console uses. */
export interface DnsRecord {
  id: string;
  name: string;
  type: string;
  content: string;
  data?: Record<string, string | number>;
  priority?: number;
  proxiable: boolean;
  proxied: boolean;
  ttl: number;
  comment: string | null;
  tags: string[];
  modified_on: string;
}

export const recordTypes: readonly string[] = [
  "A",
  "AAAA",
  "CNAME",
  "TXT",
  "MX",
  "NS",
  "CAA",
  "SRV",
  "HTTPS",
  "SVCB",
  "PTR",
  "URI",
  "NAPTR",
  "DS",
  "TLSA",
  "SSHFP",
  "CERT",
  "DNSKEY",
  "LOC",
  "OPENPGPKEY",
  "SMIMEA",
];

interface DataField {
  name: string;
  label: string;
  isNumber?: boolean;
  placeholder?: string;
}
const number = (name: string, label: string): DataField => ({ name, label, isNumber: true });

const service: DataField[] = [
  number("priority", "Priority"),
  { name: "target", label: "Target", placeholder: "." },
  { name: "value", label: "Parameters", placeholder: 'alpn="h3,h2"' },
];
/** The fields of records whose value has parts. All others have one text. */
export const dataFields: Readonly<Record<string, readonly DataField[]>> = {
  CAA: [
    number("flags", "Flags"),
    { name: "tag", label: "Tag", placeholder: "issue" },
    { name: "value", label: "Value", placeholder: "letsencrypt.org" },
  ],
  SRV: [
    number("priority", "Priority"),
    number("weight", "Weight"),
    number("port", "Port"),
    { name: "target", label: "Target" },
  ],
  HTTPS: service,
  SVCB: service,
  URI: [
    number("weight", "Weight"),
    { name: "target", label: "Target", placeholder: "https://www.example.com/" },
  ],
  DS: [
    number("key_tag", "Key tag"),
    number("algorithm", "Algorithm"),
    number("digest_type", "Digest type"),
    { name: "digest", label: "Digest" },
  ],
  TLSA: [
    number("usage", "Usage"),
    number("selector", "Selector"),
    number("matching_type", "Matching type"),
    { name: "certificate", label: "Certificate" },
  ],
  SSHFP: [
    number("algorithm", "Algorithm"),
    number("type", "Type"),
    { name: "fingerprint", label: "Fingerprint" },
  ],
  NAPTR: [
    number("order", "Order"),
    number("preference", "Preference"),
    { name: "flags", label: "Flags" },
    { name: "service", label: "Service" },
    { name: "regex", label: "Regular expression" },
    { name: "replacement", label: "Replacement" },
  ],
};

export const placeholders: Readonly<Record<string, string>> = {
  A: "192.0.2.1",
  AAAA: "2001:db8::1",
  CNAME: "www.example.net",
  MX: "mail.example.com",
  TXT: '"v=spf1 -all"',
  NS: "ns1.example.net",
};

export const hasPriority = (type: string): boolean => type === "MX" || type === "URI";
export const isProxiable = (type: string): boolean => type === "A" || type === "AAAA" || type === "CNAME";

/** The name below the zone, "@" for the zone itself. */
export const shortName = (name: string, zone: string): string =>
  name === zone ? "@" : name.endsWith(`.${zone}`) ? name.slice(0, -zone.length - 1) : name;

export const ttls = [
  { value: "1", label: "Auto" },
  { value: "60", label: "1 min" },
  { value: "300", label: "5 min" },
  { value: "3600", label: "1 h" },
  { value: "86400", label: "1 d" },
];
export const ttlText = (ttl: number): string =>
  ttls.find(({ value }) => Number(value) === ttl)?.label ?? `${ttl} s`;

/** Protocol numbers (IANA, Domain Name System parameters). */
export const types = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  CERT: 37,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  TLSA: 52,
  SMIMEA: 53,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  SVCB: 64,
  HTTPS: 65,
  NXNAME: 128,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const;

export const classes = { IN: 1, CH: 3, ANY: 255 } as const;

export const opcodes = { query: 0, notify: 4, update: 5 } as const;

/** Codes of results (RFC 6895, 2.3). */
export const rcodes = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
  notAuth: 9,
  badVersion: 16,
  badCookie: 23,
} as const;

/** Bits of the header's second word. */
export const flags = { qr: 0x8000, aa: 0x0400, tc: 0x0200, rd: 0x0100, ad: 0x0020, cd: 0x0010 } as const;

export const ednsOptions = { nsid: 3, cookie: 10, extendedError: 15 } as const;
/** Bits of the word of flags in an OPT record: DNSSEC answer OK, and compact answers OK (RFC 9824 §5.1). */
export const ednsFlags = { do: 0x8000, co: 0x4000 } as const;

export const extendedErrors = {
  notAuthoritative: 20,
  notSupported: 21,
  noReachableAuthority: 22,
  invalidQueryType: 30,
} as const;

/** The length of the head of a DNS message. */
export const headerBytes = 12;
export const messageBytesMax = 65_535;
/** Maximum size of a datagram, small enough to avoid fragmentation. */
export const udpBytesMax = 1232;
export const udpBytesWithoutEdns = 512;

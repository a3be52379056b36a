import { declare } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";
import { choice } from "../../platform/config/setting.ts";

/** The name server. */
export const declaration = declare({
  settings: {
    dnsThreads: {
      kind: "count",
      min: 0,
      max: 64,
      flag: "dns-threads",
      env: "SELVEDGE_DNS_THREADS",
      default: 0,
      describe: "threads that answer DNS; 0 to answer on the main thread",
    },
    dnsUdp: {
      ...choice(["single", "batched"]),
      flag: "dns-udp",
      env: "SELVEDGE_DNS_UDP",
      default: "single",
      describe:
        "whether a system call receives one datagram or a batch; batches need node:ffi (experimental, Linux)",
    },
    dnsResponseRateLimit: {
      kind: "count",
      min: 0,
      max: 1_000_000,
      flag: "dns-response-rate-limit",
      env: "SELVEDGE_DNS_RESPONSE_RATE_LIMIT",
      default: 200,
      describe:
        "similar responses in a second to one network (/24 or /56) without a DNS cookie; 0 for no limit",
    },
    dnsCookieSecret: {
      kind: "text",
      form: forms.hexKey,
      flag: "dns-cookie-secret",
      env: "SELVEDGE_DNS_COOKIE_SECRET",
      describe:
        "32 hex characters, the same for all servers behind one address (RFC 9018) (default: generated)",
      secret: true,
    },
  },
});

import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { watchFile } from "../../../platform/util/watch-file.ts";
import { detailsOf, readChain, readKey } from "./certificate.ts";
import type { ServedCertificate } from "../secure-contexts.ts";

const pollIntervalMs = 10_000;

/** Certificates from files in the configuration, which another program renews. */
export class ConfiguredCertificates {
  readonly #pairs: readonly { certificate: string; key: string }[];
  readonly #logger: Pick<Logger, "info" | "warn">;
  #current: ServedCertificate[];
  #unwatch: readonly (() => void)[] = [];
  #onChange: ((certificates: readonly ServedCertificate[]) => void) | undefined;

  /** `texts` are "CERTIFICATE.pem:KEY.pem". An invalid file is an error at startup, and a warning later. */
  constructor(texts: readonly string[], logger: Pick<Logger, "info" | "warn">) {
    this.#pairs = texts.map(pairOf);
    this.#logger = logger;
    this.#current = this.#pairs.map(read);
  }

  get current(): readonly ServedCertificate[] {
    return this.#current;
  }

  /** Watches the files and reports changes. */
  watch(onChange: (certificates: readonly ServedCertificate[]) => void, intervalMs = pollIntervalMs): void {
    this.#onChange = onChange;
    const files = this.#pairs.flatMap(({ certificate, key }) => [certificate, key]);
    this.#unwatch = files.map((file) => watchFile(file, intervalMs, () => this.reload()));
  }

  close(): void {
    for (const unwatch of this.#unwatch) unwatch();
  }

  /** Reads the files again. */
  reload(): void {
    try {
      const next = this.#pairs.map(read);
      this.#current = next;
      this.#onChange?.(next);
      this.#logger.info(
        { hosts: next.flatMap(({ hosts }) => hosts) },
        "certificates were read from their files",
      );
    } catch (error) {
      // Certificate and key may be written at different times: the next change reads both again.
      this.#logger.warn(
        { err: error },
        "certificates could not be read from their files; the previous ones stay in use",
      );
    }
  }
}

/** Reads "CERTIFICATE.pem:KEY.pem". Throws if a file cannot be read, or if they do not belong together. */
export const readPair = (text: string): ServedCertificate => read(pairOf(text));

function pairOf(text: string): { certificate: string; key: string } {
  const [certificate = "", key = ""] = text.split(":");
  return { certificate, key };
}

function read({
  certificate: certificateFile,
  key,
}: {
  certificate: string;
  key: string;
}): ServedCertificate {
  const certificate = readFileSync(certificateFile, "utf8");
  const privateKey = readFileSync(key, "utf8");
  const [leaf] = readChain(certificate);
  if (!leaf!.checkPrivateKey(readKey(privateKey)))
    throw new Error(`The key in ${key} does not belong to the certificate in ${certificateFile}`);
  const { hosts, expiresOn } = detailsOf(leaf!);
  return { certificate, privateKey, hosts, expiresOn, rank: 0.5 };
}

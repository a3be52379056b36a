import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Credentials } from "./signature.ts";

/** Credentials that can change while the program runs. */
export interface CredentialsSource {
  /** The current credentials. Rejects if there are none. */
  current(): Promise<Credentials>;
  /** Reads the credentials again. Resolves with whether they have changed. */
  renew(): Promise<boolean>;
}

type Expiring = Credentials & { expiresOn?: number };

/** How long before their expiry temporary credentials are read again. */
const renewalMs = 5 * 60_000;
/** How long to wait before a failed server of credentials is asked again. */
const againMs = 10_000;
const answerMs = 5000;

/** Fixed credentials, from the settings. */
export const fixedCredentials = (credentials: Credentials): CredentialsSource => ({
  current: async () => credentials,
  renew: async () => false,
});

/**
 * The source of credentials that the environment names, in the order of the AWS SDKs: variables, the shared
 * credentials file, or the server of a container. Undefined if the environment names none. Throws
 * `RefusedAddress`.
 */
export function environmentCredentials(env: NodeJS.ProcessEnv = process.env): CredentialsSource | undefined {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = env;
  if (AWS_ACCESS_KEY_ID !== undefined && AWS_SECRET_ACCESS_KEY !== undefined)
    return fixedCredentials({
      accessKeyId: AWS_ACCESS_KEY_ID,
      secretAccessKey: AWS_SECRET_ACCESS_KEY,
      sessionToken: AWS_SESSION_TOKEN,
    });
  const { AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE } = env;
  if (AWS_SHARED_CREDENTIALS_FILE !== undefined || AWS_PROFILE !== undefined) {
    const file = AWS_SHARED_CREDENTIALS_FILE ?? join(homedir(), ".aws/credentials");
    return new RenewedCredentials(async () => readProfile(file, AWS_PROFILE ?? "default"));
  }
  const url = containerUrl(env);
  return url === undefined ? undefined : new RenewedCredentials(async () => askContainer(url, env));
}

/** Credentials that are read at their first use, before they expire, and after the store has refused them. */
export class RenewedCredentials implements CredentialsSource {
  readonly #read: () => Promise<Expiring>;
  #known: Expiring | undefined;
  #reading: Promise<Expiring> | undefined;
  #failedAt = -Infinity;

  constructor(read: () => Promise<Expiring>) {
    this.#read = read;
  }

  async current(): Promise<Credentials> {
    const known = this.#known;
    if (known === undefined) return this.#readOnce();
    const isEnding = known.expiresOn !== undefined && known.expiresOn - Date.now() < renewalMs;
    if (!isEnding || performance.now() - this.#failedAt < againMs) return known;
    return this.#readOnce().catch(() => known); // they are still valid for some minutes
  }

  async renew(): Promise<boolean> {
    const before = this.#known;
    const { accessKeyId, secretAccessKey, sessionToken } = await this.#readOnce();
    return (
      before === undefined ||
      before.accessKeyId !== accessKeyId ||
      before.secretAccessKey !== secretAccessKey ||
      before.sessionToken !== sessionToken
    );
  }

  async #readOnce(): Promise<Expiring> {
    this.#reading ??= this.#read()
      .then((read) => (this.#known = read))
      .catch((error: unknown) => {
        this.#failedAt = performance.now();
        throw error;
      })
      .finally(() => (this.#reading = undefined));
    return this.#reading;
  }
}

/** The credentials of a profile in a shared credentials file. */
async function readProfile(file: string, profile: string): Promise<Credentials> {
  const values = new Map<string, string>();
  let isProfile = false;
  for (const line of (await readFile(file, "utf8")).split("\n")) {
    const [, section] = /^\s*\[([^\]]+)\]/.exec(line) ?? [];
    if (section !== undefined) isProfile = section.trim() === profile;
    const [, name, value] = /^\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? [];
    if (isProfile && name !== undefined) values.set(name.toLowerCase(), value!);
  }
  const accessKeyId = values.get("aws_access_key_id");
  const secretAccessKey = values.get("aws_secret_access_key");
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new Error(
      `Expected aws_access_key_id and aws_secret_access_key of the profile ${profile} in ${file}`,
    );
  return { accessKeyId, secretAccessKey, sessionToken: values.get("aws_session_token") };
}

/** The address of a server of credentials could expose them to others, and is refused. */
export class RefusedAddress extends Error {}

/** Where credentials may be asked for without TLS, as in the AWS SDKs: this machine, ECS, and EKS. */
const plainHosts: ReadonlySet<string> = new Set([
  "localhost",
  "127.0.0.1",
  "[::1]",
  "169.254.170.2",
  "169.254.170.23",
  "[fd00:ec2::23]",
]);

/** The address of a container's credentials, as ECS and EKS set it. Throws if requests there could expose them. */
function containerUrl(env: NodeJS.ProcessEnv): string | undefined {
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path, AWS_CONTAINER_CREDENTIALS_FULL_URI: full } = env;
  const text = path === undefined ? full : `http://169.254.170.2${path}`;
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && plainHosts.has(url.hostname)))
    return url.href;
  throw new RefusedAddress(
    "Expected an https URL, or an http URL of a container's own server, in " +
      `AWS_CONTAINER_CREDENTIALS_FULL_URI but received ${JSON.stringify(text)}`,
  );
}

async function askContainer(url: string, env: NodeJS.ProcessEnv): Promise<Expiring> {
  const { AWS_CONTAINER_AUTHORIZATION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file } = env;
  const token =
    file === undefined ? AWS_CONTAINER_AUTHORIZATION_TOKEN : (await readFile(file, "utf8")).trim();
  const response = await fetch(url, {
    headers: token === undefined ? {} : { authorization: token },
    signal: AbortSignal.timeout(answerMs),
  });
  if (!response.ok) throw new Error(`The server of credentials answered ${response.status}`);
  const { AccessKeyId, SecretAccessKey, Token, Expiration } = (await response.json()) as Record<
    string,
    unknown
  >;
  if (typeof AccessKeyId !== "string" || typeof SecretAccessKey !== "string")
    throw new Error("Expected AccessKeyId and SecretAccessKey in the response of the server of credentials");
  const expiresOn = typeof Expiration === "string" ? Date.parse(Expiration) : NaN;
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: typeof Token === "string" ? Token : undefined,
    ...(Number.isNaN(expiresOn) ? {} : { expiresOn }),
  };
}

/** Names of query parameters whose values are credentials, or sign a URL. */
const secret =
  /([?&;](?:sig|signature|verify|exp_sig|token|auth|key|pass|pwd|code|jwt|secret|password|passwd|credentials?|access[_-]?token|id[_-]?token|refresh[_-]?token|client[_-]?secret|api[_-]?key|apikey|session(?:[_-]?id)?|x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid)=)[^&;#\s]*/gi;

/** A path or URL whose query carries no credential: their values become `REDACTED`. */
export const withoutSecrets = (url: string): string =>
  url.includes("=") ? url.replace(secret, "$1REDACTED") : url;

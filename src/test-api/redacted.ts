import { isSecretName } from "../platform/access-log/declaration.ts";

const redacted = "REDACTED";
const secretField =
  /secret|passw|passphrase|private_?key|api_?key|credential|jwt|^(?:auth|access|upload)?_?token$/i;
/** Operations that answer with the value of an API token, in the field `value` or `result`. */
const makesTokens = (operation: string): boolean =>
  operation.includes("token") && /create|roll|value/.test(operation);

/** A body or an answer without secrets. Fields of bindings of the type secret_text are secrets too. */
export function withoutSecretFields(value: unknown, operation: string | null): unknown {
  const hidesValue = operation !== null && makesTokens(operation);
  const shown = (each: unknown, name: string): unknown => {
    if (typeof each !== "object" || each === null) {
      const isSecret = secretField.test(name) || (hidesValue && (name === "value" || name === "result"));
      return isSecret && typeof each === "string" ? redacted : each;
    }
    if (Array.isArray(each)) return each.map((item) => shown(item, name));
    const isSecretText = (each as { type?: unknown }).type === "secret_text";
    return Object.fromEntries(
      Object.entries(each).map(([field, inner]) => [
        field,
        isSecretText && field === "text" ? redacted : shown(inner, field),
      ]),
    );
  };
  return shown(value, "");
}

/** Headers or parameters without credentials. */
export function withoutCredentials(
  values: Iterable<readonly [string, string | readonly string[] | undefined]>,
): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const [name, value] of values)
    if (value !== undefined)
      shown[name] = isSecretName(name) ? redacted : typeof value === "string" ? value : value.join(", ");
  return shown;
}

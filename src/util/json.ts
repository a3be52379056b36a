/** Values as they are shown in messages: short, and on one line. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return "nothing";
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

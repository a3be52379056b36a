import { useRef } from "preact/hooks";

/**
 * The entry of a list that a dialog has opened, as last read. It stays when another person deletes it, so that the
 * dialog keeps the person's input: it goes only when `key`, which names the entry, changes.
 */
export function useOpened<T>(
  key: string,
  found: T | undefined,
): { opened: T | undefined; isDeleted: boolean } {
  const last = useRef<{ key: string; entry: T } | undefined>(undefined);
  if (found !== undefined) last.current = { key, entry: found };
  else if (last.current?.key !== key) last.current = undefined;
  return { opened: last.current?.entry, isDeleted: found === undefined && last.current !== undefined };
}

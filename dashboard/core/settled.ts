import { useEffect, useState } from "preact/hooks";

const typingMs = 150;

/** A value that is typed, once it has not changed for a moment. */
export function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    if (value === settled) return;
    const timer = setTimeout(() => setSettled(value), typingMs);
    return () => clearTimeout(timer);
  }, [value, settled]);
  return settled;
}

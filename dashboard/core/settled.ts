import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const typingMs = 100;

/** A value that a person edits. The first change of several counts at once, the last one when they pause. */
export function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(value);
  latest.current = value;
  useLayoutEffect(() => {
    if (value === settled) return;
    if (timer.current === undefined) setSettled(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = undefined;
      setSettled(latest.current);
    }, typingMs);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return settled;
}

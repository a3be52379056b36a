import { useEffect, useRef, useState } from "preact/hooks";
import { asOption } from "./form.tsx";
import { Icon } from "./icon.tsx";

const waitMs = 100;

/**
 * A field that narrows a list. Keys: "/" goes to it, Escape empties it. Its text is one step of the history until the focus
 * comes back, so that going back undoes it: `replace` says whether a value replaces the one before.
 */
export function Filter({
  label,
  value,
  onChange,
  placeholder = "Filter",
}: {
  label: string;
  value: string;
  onChange: (value: string, replace: boolean) => void;
  placeholder?: string;
}) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const shown = useRef(value);
  shown.current = value;
  /** The last value that this field has set since it got the focus. */
  const typed = useRef<string>(undefined);
  useEffect(() => {
    // The text in the field is newer while a person types.
    if (timer.current === undefined) setText(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (next: string): void => {
    const isMore = typed.current === shown.current;
    typed.current = next;
    onChange(next, isMore);
  };
  const change = (next: string): void => {
    setText(next);
    // The first letter, a paste and Escape count at once; further letters when the person pauses.
    if (timer.current === undefined) apply(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = undefined;
      if (typed.current !== next) apply(next);
    }, waitMs);
  };
  return (
    <div class="filter">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        data-filter=""
        spellcheck={false}
        autocomplete="off"
        value={text}
        onFocus={() => (typed.current = undefined)}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && text !== "") {
            event.preventDefault();
            change("");
          }
        }}
      />
    </div>
  );
}

/** A choice of one of a few values, in a toolbar. Each choice is a step of the history. */
export const Choice = ({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: string;
  onChange: (value: string, replace: boolean) => void;
  options: readonly (string | { value: string; label: string })[];
}) => (
  <select
    class="short"
    aria-label={label}
    value={value}
    onChange={(event) => onChange(event.currentTarget.value, false)}
  >
    {options.map(asOption)}
  </select>
);

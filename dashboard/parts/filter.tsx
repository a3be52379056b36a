import { useEffect, useRef, useState } from "preact/hooks";
import { asOption } from "./form.tsx";
import { Icon } from "./icon.tsx";

const waitMs = 120;

/** A field that narrows a list. Keys: "/" goes to it, Escape empties it. */
export function Filter({
  label,
  value,
  onChange,
  placeholder = "Filter",
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
}) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => setText(value), [value]);
  const change = (next: string): void => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange(next), waitMs);
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

/** A choice of one of a few values, in a toolbar. */
export const Choice = ({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly (string | { value: string; label: string })[];
}) => (
  <select
    class="short"
    aria-label={label}
    value={value}
    onChange={(event) => onChange(event.currentTarget.value)}
  >
    {options.map(asOption)}
  </select>
);

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface Option<T> {
  key: string;
  value: T;
  label: string;
  detail?: ComponentChildren;
}

interface ComboboxProps<T> {
  label: string;
  text: string;
  onText: (text: string) => void;
  options: readonly Option<T>[];
  onChoose: (value: T) => void;
  placeholder?: string;
  /** Shows the list below the field all the time, as in the palette. */
  isOpen?: boolean;
  empty?: string;
}

/**
 * A field with a list of suggestions. Keys: ↓ ↑ move, Home and End move in the text, Enter chooses. Escape closes the
 * list; with the list closed, it goes to the element around it.
 */
export function Combobox<T>({
  label,
  text,
  onText,
  options,
  onChoose,
  placeholder,
  isOpen: always = false,
  empty,
}: ComboboxProps<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(0);
  const [hasFocus, setFocus] = useState(false);
  const isOpen = always || (hasFocus && options.length > 0);
  const chosen = Math.min(at, options.length - 1);
  useEffect(() => setAt(0), [text]);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const move = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt((chosen + 1) % Math.max(1, options.length));
    else if (event.key === "ArrowUp") setAt((chosen + options.length - 1) % Math.max(1, options.length));
    else if (event.key === "Enter" && isOpen && options[chosen] !== undefined)
      onChoose(options[chosen].value);
    else if (event.key === "Escape" && isOpen && !always) setFocus(false);
    else return;
    event.preventDefault();
    if (event.key !== "Escape") event.stopPropagation();
  };
  return (
    <div class={`combobox ${always ? "open" : ""}`}>
      <input
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && options.length > 0 ? `${id}-${chosen}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={text}
        onInput={(event) => {
          setFocus(true);
          onText(event.currentTarget.value);
        }}
        onFocus={() => setFocus(true)}
        onBlur={() => setFocus(false)}
        onKeyDown={move}
      />
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label={label}
        class="options"
        hidden={!isOpen || options.length === 0}
      >
        {options.map((option, index) => (
          <div
            key={option.key}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onMouseMove={() => setAt(index)}
            onMouseDown={(event) => {
              event.preventDefault();
              onChoose(option.value);
            }}
          >
            <span>{option.label}</span>
            {option.detail && <small>{option.detail}</small>}
          </div>
        ))}
      </div>
      {isOpen && options.length === 0 && empty && (
        <p class="nothing" role="status">
          {empty}
        </p>
      )}
    </div>
  );
}

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
  /** Better options may follow: Enter waits for them, unless an option was chosen by arrow or mouse. */
  isWaiting?: boolean;
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
  isWaiting = false,
}: ComboboxProps<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  // Options that arrive later move others, and so the key is kept.
  const [at, setAt] = useState<string | undefined>(undefined);
  const [isEntered, setEntered] = useState(false);
  const [hasFocus, setFocus] = useState(false);
  const isOpen = always || (hasFocus && options.length > 0);
  const moved = options.findIndex(({ key }) => key === at);
  const chosen = Math.max(0, moved);
  useEffect(() => {
    if (!isEntered || isWaiting) return;
    setEntered(false);
    if (options[0] !== undefined) onChoose(options[0].value);
  }, [isEntered, isWaiting]);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen, at]);
  const go = (index: number): void => setAt(options[index]?.key);
  const move = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") go((chosen + 1) % Math.max(1, options.length));
    else if (event.key === "ArrowUp") go((chosen + options.length - 1) % Math.max(1, options.length));
    else if (event.key === "Enter" && isWaiting && moved < 0) setEntered(true);
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
          setAt(undefined);
          setEntered(false);
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
            onMouseMove={() => setAt(option.key)}
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

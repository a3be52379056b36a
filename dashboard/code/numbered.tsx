import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

/** The numbers are one text, so that a long file has few elements. */
const numbersOf = (text: string): string =>
  Array.from({ length: text.split("\n").length }, (_, index) => index + 1).join("\n");

/** Code with the numbers of its lines beside it. Lines are not wrapped, and the numbers scroll with them. */
export function Numbered({ text, children }: { text: string; children: ComponentChildren }) {
  const numbers = useRef<HTMLPreElement>(null);
  return (
    <div
      class="numbered"
      onScrollCapture={({ target }) => {
        if (target !== numbers.current) numbers.current!.scrollTop = (target as Element).scrollTop;
      }}
    >
      <pre ref={numbers} aria-hidden="true" class="line-numbers">
        {numbersOf(text)}
      </pre>
      {children}
    </div>
  );
}

import { cloneElement, type VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

const delayMs = 350;

/**
 * Text beside an element on hover and on focus. Keys: Escape hides it (WCAG 1.4.13). It describes the element for
 * screen readers.
 */
export function Tooltip({ text, children }: { text: string; children: VNode<Record<string, unknown>> }) {
  const id = useId();
  const holder = useRef<HTMLSpanElement>(null);
  const bubble = useRef<HTMLSpanElement>(null);
  const [isShown, setShown] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const show = (afterMs: number): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setShown(true), afterMs);
  };
  const hide = (): void => {
    clearTimeout(timer.current);
    setShown(false);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    const element = bubble.current;
    if (element === null) return;
    if (!isShown) return element.hidePopover();
    element.showPopover();
    place(element, holder.current!.firstElementChild!.getBoundingClientRect());
  }, [isShown]);
  return (
    <span
      ref={holder}
      class="tooltip-holder"
      onMouseEnter={() => show(delayMs)}
      onMouseLeave={hide}
      onFocusIn={(event) => {
        if ((event.target as Element).matches(":focus-visible")) show(0);
      }}
      onFocusOut={hide}
      onKeyDown={(event) => {
        if (event.key === "Escape" && isShown) {
          event.stopPropagation();
          hide();
        }
      }}
    >
      {cloneElement(children, { "aria-describedby": id })}
      <span ref={bubble} id={id} role="tooltip" popover="manual" class="tooltip">
        {text}
      </span>
    </span>
  );
}

/** Puts a floating element below a place, or above it where there is no room. */
export function place(
  floating: HTMLElement,
  at: DOMRect,
  align: "start" | "center" | "end" = "center",
): void {
  const { width, height } = floating.getBoundingClientRect();
  const wanted =
    align === "center" ? at.left + at.width / 2 - width / 2 : align === "start" ? at.left : at.right - width;
  const left = Math.max(8, Math.min(wanted, innerWidth - width - 8));
  const below = at.bottom + 6;
  const top = below + height > innerHeight - 8 && at.top - height - 6 > 0 ? at.top - height - 6 : below;
  floating.style.left = `${left}px`;
  floating.style.top = `${top}px`;
}

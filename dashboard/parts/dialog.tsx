import type { ComponentChildren } from "preact";
import { useLayoutEffect, useId, useRef } from "preact/hooks";
import { noteOpener } from "../core/focus.ts";
import { leave } from "../core/unsaved.ts";
import { Button } from "./button.tsx";

/** "side" is a panel at the right edge, a full screen on phones. */
export type DialogKind = "center" | "side" | "wide";

interface DialogProps {
  title: string;
  children: ComponentChildren;
  onClose: () => void;
  kind?: DialogKind;
}

const firsts = [
  "[autofocus]",
  ".dialog-body :is(input, select, textarea, button, [tabindex='0']):not([disabled], [type=hidden])",
];

/** Moves the focus to the field that a dialog begins with. Returns false if there is none yet. */
function focusIn(dialog: HTMLElement): boolean {
  const chosen = firsts.map((each) => dialog.querySelector<HTMLElement>(each)).find((each) => each !== null);
  chosen?.focus();
  return chosen !== undefined && chosen !== null;
}

/**
 * A modal dialog. The browser keeps the focus inside and gives it back. Unsaved input in it is not lost without a
 * question. Keys: Escape closes; Tab and Shift+Tab go round.
 */
export function Dialog({ title, children, onClose, kind = "center" }: DialogProps) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  // Opens before the browser paints, so that keys pressed right after the shortcut go into the dialog.
  useLayoutEffect(() => {
    const dialog = element.current!;
    noteOpener(dialog);
    dialog.showModal();
    let isChosen = focusIn(dialog);
    // Content that loads later, or replaces the element with the focus, gets the focus.
    const observer = new MutationObserver(() => {
      const isLost = document.activeElement === document.body;
      if (dialog.contains(document.activeElement) ? !isChosen : isLost) isChosen = focusIn(dialog);
    });
    observer.observe(dialog, { childList: true, subtree: true });
    return () => {
      observer.disconnect();
      // While it is open, the browser refuses the focus to everything outside.
      dialog.close();
    };
  }, []);
  const close = (): void => leave(onClose, element.current!);
  return (
    <dialog
      ref={element}
      class={`dialog ${kind}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        // Handled here, because browsers close all dialogs that opened without a click on one Escape.
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
      onMouseDown={(event) => {
        if (event.target === element.current) close();
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          <Button icon="close" kind="quiet" label="Close" onPress={close} />
        </header>
        <div class="dialog-body">{children}</div>
      </div>
    </dialog>
  );
}

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useId, useRef } from "preact/hooks";
import { Button } from "./button.tsx";

/** "side" is a panel at the right edge, a full screen on phones. */
export type DialogKind = "center" | "side" | "wide";

interface DialogProps {
  title: string;
  children: ComponentChildren;
  onClose: () => void;
  kind?: DialogKind;
}

/**
 * A modal dialog. The browser keeps the focus inside and gives it back. Keys: Escape closes; Tab and Shift+Tab go round.
 */
export function Dialog({ title, children, onClose, kind = "center" }: DialogProps) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  // Opens before the browser paints, so that keys pressed right after the shortcut go into the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current!.showModal();
    const chosen = element.current!.querySelector<HTMLElement>(
      "[autofocus], .dialog-body :is(input, select, textarea, button):not([disabled], [type=hidden])",
    );
    chosen?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog ${kind}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        // Handled here, because browsers close all dialogs that opened without a click on one Escape.
        event.preventDefault();
        event.stopPropagation();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          <Button icon="close" kind="quiet" label="Close" onPress={onClose} />
        </header>
        <div class="dialog-body">{children}</div>
      </div>
    </dialog>
  );
}

import { useEffect } from "preact/hooks";
import { useLocation } from "../core/router.ts";
import { store, useStore } from "../core/store.ts";
import { Button } from "./button.tsx";

type Kind = "ok" | "bad" | "info";
interface Message {
  id: number;
  text: string;
  kind: Kind;
  at: number;
  action: { label: string; run: () => void } | undefined;
}

const shownMs = 5000;
const shownMax = 4;
/** A message of the step that led to another screen is younger, and goes along. */
const readMs = 1000;
const messages = store<readonly Message[]>([]);
let made = 0;

const remove = (id: number): void => messages.set(messages.get().filter((each) => each.id !== id));

/**
 * Shows a message at the edge of the screen. It goes with the screen that it is about. Until then failures stay; those
 * with an action stay until they are closed.
 */
export function toast(text: string, kind: Kind = "ok", action?: Message["action"]): void {
  const id = ++made;
  messages.set([...messages.get().slice(1 - shownMax), { id, text, kind, at: Date.now(), action }]);
  if (kind !== "bad" && action === undefined) setTimeout(() => remove(id), shownMs);
}

/** The list of messages. Screen readers announce new ones. */
export function Toasts() {
  const { path } = useLocation();
  useEffect(() => {
    const isCarried = ({ at, action }: Message): boolean => action !== undefined || Date.now() - at < readMs;
    messages.set(messages.get().filter(isCarried));
  }, [path]);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {useStore(messages).map(({ id, text, kind, action }) => (
        <div key={id} class={`toast ${kind}`}>
          <span>{text}</span>
          {action && (
            <Button
              kind="quiet"
              onPress={() => {
                remove(id);
                action.run();
              }}
            >
              {action.label}
            </Button>
          )}
          <Button icon="close" kind="quiet" label="Close the message" onPress={() => remove(id)} />
        </div>
      ))}
    </div>
  );
}

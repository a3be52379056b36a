import { useLayoutEffect, useRef } from "preact/hooks";
import { hold, leave, release, type Question } from "../core/unsaved.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Copyable, Notice } from "./layout.tsx";

interface ShownOnceProps {
  title: string;
  /** The sentence above the text. */
  about: string;
  text: string;
  name: string;
  onClose: () => void;
}

const uncopied: Question = {
  title: "Close it without a copy?",
  text: "It cannot be shown again.",
  lose: "Close it",
  keep: "Go back",
};

/** A secret that the API tells only now. It does not go before it is copied, or the person agrees to lose it. */
export function ShownOnce({ title, about, text, name, onClose }: ShownOnceProps) {
  const element = useRef<HTMLDivElement>(null);
  const copied = (): void => release(element.current);
  useLayoutEffect(() => {
    const shown = element.current!;
    hold(shown, uncopied);
    return () => release(shown);
  }, []);
  return (
    <Dialog title={title} onClose={onClose}>
      <div ref={element} class="stack" onCopy={copied}>
        <Notice tone="warn">{about}</Notice>
        <Copyable text={text} name={name} onCopied={copied} />
        <footer class="form-foot">
          <span class="spacer" />
          <Button kind="primary" onPress={() => leave(onClose, element.current!)}>
            Done
          </Button>
        </footer>
      </div>
    </Dialog>
  );
}

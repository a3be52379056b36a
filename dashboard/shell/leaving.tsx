import { useStore } from "../core/store.ts";
import { asked } from "../core/unsaved.ts";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";

/** Asks before unsaved input is lost. */
export function Leaving() {
  const open = useStore(asked);
  if (open === undefined) return null;
  const { title, text, lose, keep } = open.question;
  const stay = (): void => asked.set(undefined);
  return (
    <Dialog title={title} onClose={stay}>
      <p>{text}</p>
      <footer class="form-foot">
        <span class="spacer" />
        <Button onPress={stay}>{keep}</Button>
        <Button kind="bad" onPress={open.lose}>
          {lose}
        </Button>
      </footer>
    </Dialog>
  );
}

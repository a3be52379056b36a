import { Button } from "../../parts/button.tsx";
import { Notice } from "../../parts/layout.tsx";

/** Shown in the dialog of a rule that another person has deleted. */
export const DeletedNotice = ({ onAddAgain }: { onAddAgain: () => void }) => (
  <Notice tone="warn" actions={<Button onPress={onAddAgain}>Add it again</Button>}>
    This rule was deleted meanwhile.
  </Notice>
);

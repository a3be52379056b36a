import type { ComponentChildren } from "preact";
import { plural } from "../core/format.ts";
import { Button } from "./button.tsx";
import type { Chosen } from "./chosen.ts";

interface ChosenBarProps<T> {
  /** The name of one row, as "instance". */
  noun: string;
  of: Chosen<T>;
  children: ComponentChildren;
}

/** The number of chosen rows, and the actions for them. */
export const ChosenBar = <T,>({ noun, of: chosen, children }: ChosenBarProps<T>) =>
  chosen.keys.length === 0 ? null : (
    <div class="batch-bar" role="region" aria-label={`Selected ${noun}s`}>
      <strong>
        {plural(chosen.keys.length, noun)}
        {chosen.isFull && ", the most at once"}
      </strong>
      {children}
      <Button kind="quiet" onPress={chosen.clear}>
        Clear
      </Button>
    </div>
  );

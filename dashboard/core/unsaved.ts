import { store } from "./store.ts";

/** The question before something is lost. */
export interface Question {
  title: string;
  text: string;
  /** The labels of the buttons that lose it, and keep it. */
  lose: string;
  keep: string;
}

export const typed: Question = {
  title: "Discard your input?",
  text: "It is not saved yet.",
  lose: "Discard",
  keep: "Go on editing",
};

/** Elements with something that is lost when they go: forms with input that is not sent, values that are shown once. */
const held = new Map<Element, Question>();

export const hold = (element: Element, question: Question): unknown => held.set(element, question);
/** A question about the element alone has no subject any longer, and goes. */
export function release(element: Element | null): void {
  if (element === null || !held.delete(element)) return;
  const open = asked.get();
  if (open !== undefined && !open.about.some((each) => held.has(each))) asked.set(undefined);
}
export const isHeld = (): boolean => held.size > 0;

/** The question that is open now. */
export const asked = store<{ question: Question; about: readonly Element[]; lose: () => void } | undefined>(
  undefined,
);

/** Does what makes an element go: at once, or when the person agrees to lose what is unsaved in it. */
export function leave(go: () => void, within: Element = document.body): void {
  const lost = [...held].filter(([element]) => within.contains(element));
  if (lost.length === 0) return go();
  asked.set({
    question: lost[0]![1],
    about: lost.map(([element]) => element),
    lose() {
      for (const [element] of lost) held.delete(element);
      asked.set(undefined);
      go();
    },
  });
}

addEventListener("beforeunload", (event) => {
  if (isHeld()) event.preventDefault();
});

/** Elements that may get the focus, outermost last: the element with the focus, what is around it, and so on. */
type Trail = readonly Element[];

const focusable = "a[href], button, input, select, textarea, [tabindex]";
const openers = new WeakMap<Element, Trail>();
let last: Trail = [];

/** An element and what is around it. Around a dialog is the element that opened it. */
function trailOf(element: Element): Trail {
  const trail: Element[] = [];
  for (
    let each: Element | null = element;
    each !== null && each !== document.body;
    each = each.parentElement
  ) {
    trail.push(each);
    const before = openers.get(each);
    if (before !== undefined) return [...trail, ...before];
  }
  return trail;
}

/** Notes that a dialog is opened by the element with the focus, or by the one that had it last. */
export function noteOpener(dialog: Element): void {
  const { activeElement } = document;
  openers.set(
    dialog,
    activeElement === null || activeElement === document.body ? last : trailOf(activeElement),
  );
}

/** Gives the focus to the nearest thing that is still there when the element with the focus has left the document. */
function keep(): void {
  if (last.length === 0 || last[0]!.isConnected || document.activeElement !== document.body) return;
  const trail = last;
  last = [];
  for (const near of trail.filter(({ isConnected }) => isConnected))
    for (const each of [near, ...near.querySelectorAll(focusable)]) {
      if (!each.matches(focusable)) continue;
      (each as HTMLElement).focus({ preventScroll: true });
      if (document.activeElement === each) return;
    }
}

/** Keeps the focus in its place for the life of the page. */
export function keepFocus(): void {
  document.addEventListener("focusin", ({ target }) => (last = trailOf(target as Element)));
  new MutationObserver(keep).observe(document, { childList: true, subtree: true });
}

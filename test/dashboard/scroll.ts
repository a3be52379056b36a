import type { Page } from "playwright-core";

const jumps = `async ({ frames, stepPx }) => {
  const grid = document.querySelector("[role=grid]");
  const [rowPx, depthPx, rowsMax] = [36, 90, 100];
  const found = [];
  for (let frame = 0; frame < frames; frame++) {
    const top = frame * stepPx;
    grid.scrollTop = top;
    await new Promise(requestAnimationFrame);
    const rows = [...document.querySelectorAll("[data-row]")];
    const y = grid.getBoundingClientRect().top + depthPx;
    const shown = Number(rows.find((row) => row.getBoundingClientRect().bottom > y)?.dataset.row);
    const wanted = Math.floor((top + depthPx - rowPx) / rowPx);
    if (!(Math.abs(shown - wanted) <= 1) || grid.scrollTop !== top || rows.length > rowsMax)
      found.push({ frame, shown, wanted, rows: rows.length });
  }
  return found;
}`;

/** Scrolls a grid, and returns the frames in which another row than the expected one was on top, or too many in all. */
export const jumpsOf = async (page: Page, steps: { frames: number; stepPx: number }): Promise<unknown> =>
  page.evaluate(`(${jumps})(${JSON.stringify(steps)})`);

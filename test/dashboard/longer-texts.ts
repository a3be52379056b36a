import type { Page } from "playwright-core";

/** Makes every text 40 % longer, with letters that are not of English, and leaves data as it is. */
const lengthen = `(() => {
  const data = "code, pre, svg, textarea, .code, .copyable, .ruler, time";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim();
    if (!/[a-z]{2}/i.test(text) || node.parentElement.closest(data) !== null) continue;
    const foreign = text.replace(/[aeiou]/g, (vowel) => "áéíóú"["aeiou".indexOf(vowel)]);
    const more = "ñandú ".repeat(100).slice(0, Math.ceil(text.length * 0.4)).trim();
    node.data = node.data.replace(text, foreign + " " + more);
  }
})()`;

/** Texts that are cut, controls that overlap, and a page that is too wide. */
const faults = `(() => {
  const found = new Set();
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) found.add("the page is " + over + " px too wide");
  const nameOf = (each) => (each.tagName + "." + each.className).toLowerCase() + " " + each.textContent.slice(0, 40);
  const isShown = (each) =>
    each.checkVisibility({ visibilityProperty: true }) && each.clientHeight > 1 && !each.closest(".unseen, .skip, svg, pre");
  const isHead = ":is(h1, h2, th, button, label, legend, .grid-head .grid-cell)";
  for (const each of document.querySelectorAll("body *")) {
    if (each.textContent.trim() === "" || !isShown(each)) continue;
    const { overflowX, overflowY, textOverflow } = getComputedStyle(each);
    const isWider = /hidden|clip/.test(overflowX) && each.scrollWidth > each.clientWidth + 1;
    if (isWider && (textOverflow !== "ellipsis" || each.matches(isHead))) found.add("cut: " + nameOf(each));
    if (/hidden|clip/.test(overflowY) && each.scrollHeight > each.clientHeight + 2) found.add("cut below: " + nameOf(each));
  }
  const place = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.querySelector("main");
  const controls = [...place.querySelectorAll("button, a, input, select, label, h1, h2")].filter(isShown);
  const besides = 8;
  controls.forEach((one, index) => {
    for (const other of controls.slice(index + 1, index + 1 + besides)) {
      if (one.contains(other) || other.contains(one)) continue;
      const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 2 && height > 2) found.add("overlap: " + nameOf(one) + " / " + nameOf(other));
    }
  });
  return [...found];
})()`;

/** Makes the texts of a page 40 % longer, as in a longer language. Only a load brings them back. */
export const makeLonger = async (page: Page): Promise<void> => page.evaluate(lengthen);

/** The faults of a page: texts that are cut, controls that overlap, and sideways scroll. */
export const unreadable = async (page: Page): Promise<string[]> => page.evaluate(faults);

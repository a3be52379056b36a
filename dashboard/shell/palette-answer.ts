import { useEffect, useState } from "preact/hooks";
import { isAllowed } from "../core/permissions.ts";
import { fits, rank } from "../core/rank.ts";
import type { Option } from "../parts/combobox.tsx";
import { byId, readAgain, sources, type Hit } from "./palette-sources.ts";

/** A screen, an action or a thing, with the texts under which it is found. */
export interface Found extends Option<string> {
  /** Its names: a fit with one of them counts most. */
  names: readonly string[];
  /** Further words for it. */
  words?: string | undefined;
  isThing?: boolean;
  /** The label of the action that makes a new thing on this screen. */
  makes?: string;
  run?: () => void;
}

/** Results of the API for a text. */
export interface Answer {
  text: string | undefined;
  hits: readonly Found[];
}

const waitMs = 80;
/** An answer that takes longer is shown, and not waited for. */
const answerMs = 1500;
const wordsFar = 10;
const otherFar = 20;

/** The best fit of a text with the names of an option, then with its words. */
function farOf(text: string, { names, words }: Found): number | undefined {
  const ranks = (texts: readonly string[], more: number): number[] =>
    texts.flatMap((each) => {
      const far = rank(text, each);
      return far === undefined ? [] : [far === fits.letters ? otherFar : far + more];
    });
  const fars = [
    ...ranks(names, 0),
    ...ranks(words?.split(", ") ?? [], wordsFar),
    ...ranks([[...names, words].join(" ")], wordsFar),
  ];
  return fars.length === 0 ? undefined : Math.min(...fars);
}

/** Exact names of screens and actions first, then exact names of things, then prefixes, and so on. */
export function sorted(text: string, local: readonly Found[], { text: of, hits }: Answer): Found[] {
  if (text.trim() === "") return [...local, ...hits];
  return [...local, ...hits]
    .map((option) => ({
      option,
      // The server may have found it by its value or comment.
      far: farOf(text, option) ?? (option.isThing === true && of === text ? otherFar + 1 : undefined),
    }))
    .filter(({ far }) => far !== undefined)
    .toSorted(
      (a, b) => a.far! - b.far! || Number(a.option.isThing ?? false) - Number(b.option.isThing ?? false),
    )
    .map(({ option }) => option);
}

/** The results of the API for a text, a moment after the last letter. */
export function useAnswer(text: string, account: string, zone: string | undefined): Answer {
  const [answer, setAnswer] = useState<Answer>({ text: undefined, hits: [] });
  useState(readAgain);
  useEffect(() => {
    let isCurrent = true;
    const show = (lists: readonly Hit[][]): void => {
      if (!isCurrent) return;
      const hits = lists.flat().map(({ label, detail, path }): Found => ({
        key: `${detail} ${path}`,
        value: path,
        label,
        detail,
        names: [label, `${label} ${detail}`],
        isThing: true,
      }));
      setAnswer({ text, hits });
    };
    const wanted = text.trim();
    const timer = setTimeout(() => {
      const lists: Hit[][] = [];
      const asked = sources
        .filter(({ needs }) => isAllowed(needs, { accountId: account }))
        .map(async (source) => source.find(wanted, account, zone));
      const all = [...asked, byId(wanted, account)].map(async (list, at) =>
        list.then(
          // Their order does not depend on which answer was faster.
          (found) => (lists[at] = found),
          () => 0,
        ),
      );
      const slow = setTimeout(() => show(lists), answerMs);
      void Promise.all(all).then(() => {
        clearTimeout(slow);
        show(lists);
      });
    }, waitMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text, account]);
  return answer;
}

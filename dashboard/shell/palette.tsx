import { useEffect, useState } from "preact/hooks";
import { shortcuts } from "../core/keys.ts";
import { isAllowed } from "../core/permissions.ts";
import { navigate, useLocation } from "../core/router.ts";
import { Combobox, type Option } from "../parts/combobox.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { byId, sources } from "./palette-sources.ts";
import { routes } from "./routes.ts";

const waitMs = 80;
const shownMax = 30;

/** Whether all letters of a text occur in this order, and how well: a smaller number is a better match. */
export function distance(text: string, name: string): number | undefined {
  const [wanted, given] = [text.toLowerCase(), name.toLowerCase()];
  const at = given.indexOf(wanted);
  if (at >= 0) return at;
  let found = -1;
  let gaps = 0;
  for (const letter of wanted) {
    const next = given.indexOf(letter, found + 1);
    if (next < 0) return undefined;
    gaps += next - found - 1;
    found = next;
  }
  return 100 + gaps;
}

/** The command palette: opens any resource, screen or id, and runs actions of the screen. Keys: those of a combobox. */
export function Palette({ account, onClose }: { account: string; onClose: () => void }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<readonly Option<string>[]>([]);
  const { path } = useLocation();
  const [actions] = useState(() => shortcuts().filter(({ group }) => group === undefined));
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(() => {
      const asked = sources
        .filter(({ needs }) => isAllowed(needs, { accountId: account }))
        .map(async (source) => source.find(text, account).catch(() => []));
      void Promise.all([...asked, byId(text, account).catch(() => [])]).then((lists) => {
        if (isCurrent)
          setFound(
            lists
              .flat()
              .map(({ label, detail, path }) => ({ key: `${detail} ${path}`, value: path, label, detail })),
          );
      });
    }, waitMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text, account]);
  const zone = /^\/[^/]+\/zones\/([^/]+)/.exec(path)?.[1];
  const screens = routes.flatMap((route): Option<string>[] => {
    const target = route.pattern.replace(":account", account).replace(":zone", zone ?? ":zone");
    if (target.includes(":") || route.isInner === true || !isAllowed(route.needs, { accountId: account }))
      return [];
    return [
      {
        key: target,
        value: target,
        label: route.title,
        detail: route.pattern.includes(":zone") ? zone : "screen",
      },
    ];
  });
  const run = actions.map((action, index): Option<string> => ({
    key: `action ${index}`,
    value: `action ${index}`,
    label: action.label,
    detail: <kbd>{action.keys}</kbd>,
  }));
  const local = [...run, ...screens]
    .map((option) => ({ option, far: distance(text, option.label) }))
    .filter(({ far }) => far !== undefined)
    .toSorted((a, b) => a.far! - b.far!)
    .map(({ option }) => option);
  const options = (text === "" ? [...local, ...found] : [...found, ...local]).slice(0, shownMax);
  return (
    <Dialog title="Search" kind="center" onClose={onClose}>
      <div class="palette">
        <Combobox
          label="Search zones, scripts, screens and ids"
          placeholder="Name, screen, action or id"
          text={text}
          onText={setText}
          options={options}
          isOpen
          empty="Nothing has this name."
          onChoose={(value) => {
            onClose();
            if (value.startsWith("action ")) actions[Number(value.slice(7))]?.run();
            else navigate(value);
          }}
        />
      </div>
    </Dialog>
  );
}

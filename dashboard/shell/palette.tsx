import { useRef, useState } from "preact/hooks";
import { runWhenActive, shortcuts } from "../core/keys.ts";
import { isAllowed } from "../core/permissions.ts";
import { navigate, useLocation } from "../core/router.ts";
import { Combobox } from "../parts/combobox.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { absentText } from "./absent.ts";
import { sorted, useAnswer, type Found } from "./palette-answer.ts";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";

const shownMax = 30;
const zonesMax = 3;

/** A screen, and what can be made on it. `zone` is its zone, if it is of one. */
function optionsOf(route: Route, account: string, zone: string | undefined): Found[] {
  const target = route.pattern.replace(":account", account).replace(":zone", zone ?? "");
  const screen: Found = {
    key: target,
    value: target,
    label: route.title,
    detail: zone ?? "screen",
    names: route.tab === undefined ? [route.title] : [route.title, route.tab],
    words: [zone, route.words].filter(Boolean).join(", "),
  };
  if (route.makes === undefined) return [screen];
  const { makes: label } = route;
  const make = { key: `${label} ${target}`, value: target, label, detail: zone ?? route.title, makes: label };
  return [screen, { ...make, names: [label], ...(zone !== undefined && { words: zone }) }];
}

/** All screens for an account, and those of some zones. */
function screensOf(account: string, zones: readonly string[]): Found[] {
  return routes
    .filter(({ isInner, needs }) => isInner !== true && isAllowed(needs, { accountId: account }))
    .flatMap((route) =>
      route.pattern.includes(":zone")
        ? zones.flatMap((zone) => optionsOf(route, account, zone))
        : optionsOf(route, account, undefined),
    );
}

/** The command palette: opens any resource, screen or id, and runs actions of the screen. Keys: those of a combobox. */
export function Palette({ account, onClose }: { account: string; onClose: () => void }) {
  const [text, setText] = useState("");
  const { path } = useLocation();
  const [actions] = useState(() => shortcuts().filter(({ group }) => group === undefined));
  const zone = /^\/[^/]+\/zones\/([^/]+)/.exec(path)?.[1];
  const answer = useAnswer(text, account, zone);
  // Outside of a zone, those that this palette has found last.
  const met = useRef(new Set<string>());
  for (const { detail, label } of answer.hits) if (detail === "zone") met.current.add(label);
  const zones = zone !== undefined ? [zone] : text === "" ? [] : [...met.current].slice(-zonesMax);
  const run = actions.map((action, index): Found => ({
    key: `action ${index}`,
    value: "",
    label: action.label,
    names: [action.label],
    detail: <kbd>{action.keys}</kbd>,
    run: () => action.run(),
  }));
  const screens = screensOf(account, zones).filter(
    ({ makes }) => !actions.some(({ label }) => label === makes),
  );
  const options = sorted(text, [...run, ...screens], answer).slice(0, shownMax);
  const exact = text.trim().toLowerCase();
  const isCertain =
    options[0]?.isThing !== true && options[0]?.names.some((name) => name.toLowerCase() === exact);
  const note = absentText(text);
  return (
    <Dialog title="Search" kind="center" onClose={onClose}>
      <div class="palette">
        <Combobox
          label="Search zones, scripts, screens and ids"
          placeholder="Name, screen, action or id"
          text={text}
          onText={setText}
          options={options.map((option) => ({ ...option, value: option }))}
          isOpen
          isWaiting={answer.text !== text && isCertain !== true}
          empty={answer.text === text ? (note ?? "Nothing has this name.") : "Searching …"}
          onChoose={(option) => {
            onClose();
            if (option.run !== undefined) return option.run();
            if (option.makes !== undefined) runWhenActive(option.makes);
            navigate(option.value);
          }}
        />
        {note !== undefined && options.length > 0 && (
          <p class="nothing" role="status">
            {note}
          </p>
        )}
      </div>
    </Dialog>
  );
}

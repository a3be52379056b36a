import { shortcuts } from "../core/keys.ts";
import { singleKeys } from "../core/preferences.ts";
import { useStore } from "../core/store.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Switch } from "../parts/form.tsx";

const inTables: readonly [string, string][] = [
  ["j k ↓ ↑", "Next and previous row"],
  ["Tab", "To the links and buttons of the row, then out of the table"],
  ["Enter e", "Open"],
  ["x Space", "Select"],
  ["Page Up, Page Down, Home, End", "Move by a screen, to the ends"],
  ["Esc", "One step back"],
];

/** All keys that work on this screen. */
export function Help({ onClose }: { onClose: () => void }) {
  const isOn = useStore(singleKeys);
  const groups = Map.groupBy(shortcuts(), ({ group }) => group ?? "This screen");
  return (
    <Dialog title="Keyboard shortcuts" kind="wide" onClose={onClose}>
      <div class="key-groups">
        {[...groups].map(([name, list]) => (
          <KeyList
            key={name}
            name={name}
            keys={list.map(({ keys, label }) => [keys.replace("mod+", "Ctrl "), label])}
          />
        ))}
        <KeyList name="In tables" keys={inTables} />
      </div>
      <Switch
        label="Single letters are keys"
        hint="Without them, only Ctrl K, Escape and the arrows work."
        isOn={isOn}
        onChange={(value) => singleKeys.set(value)}
      />
    </Dialog>
  );
}

const KeyList = ({ name, keys }: { name: string; keys: readonly (readonly [string, string])[] }) => (
  <section>
    <h3>{name}</h3>
    <dl>
      {keys.map(([key, label]) => (
        <div key={`${key} ${label}`}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{label}</dd>
        </div>
      ))}
    </dl>
  </section>
);

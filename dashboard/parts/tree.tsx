import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

export interface TreeNode {
  key: string;
  label: ComponentChildren;
  children?: readonly TreeNode[];
}

interface TreeProps {
  label: string;
  nodes: readonly TreeNode[];
  /** Levels that are open at first. */
  openLevels?: number;
  onOpen?: (key: string) => void;
}

interface Line {
  node: TreeNode;
  level: number;
  parent: string | undefined;
  size: number;
  place: number;
}

/** A tree of labels. Keys: ↓ ↑ move, → opens or goes to the first child, ← closes or goes to the parent, Home, End, Enter. */
export function Tree({ label, nodes, openLevels = 2, onOpen }: TreeProps) {
  const [changed, setChanged] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [current, setCurrent] = useState<string | undefined>(undefined);
  const holder = useRef<HTMLDivElement>(null);
  const isOpen = ({ node, level }: Pick<Line, "node" | "level">): boolean =>
    changed.get(node.key) ?? level < openLevels;
  const lines: Line[] = [];
  const visit = (list: readonly TreeNode[], level: number, parent: string | undefined): void =>
    list.forEach((node, index) => {
      const line = { node, level, parent, size: list.length, place: index + 1 };
      lines.push(line);
      if (node.children !== undefined && isOpen(line)) visit(node.children, level + 1, node.key);
    });
  visit(nodes, 0, undefined);
  const at = Math.max(
    0,
    lines.findIndex(({ node }) => node.key === current),
  );
  const go = (line: Line | undefined): void => {
    if (line === undefined) return;
    setCurrent(line.node.key);
    holder.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[lines.indexOf(line)]?.focus();
  };
  const toggle = (line: Line, open: boolean): void => setChanged(new Map(changed).set(line.node.key, open));
  const move = (event: KeyboardEvent): void => {
    const line = lines[at];
    if (line === undefined) return;
    const hasChildren = line.node.children !== undefined;
    if (event.key === "ArrowDown") go(lines[at + 1]);
    else if (event.key === "ArrowUp") go(lines[at - 1]);
    else if (event.key === "Home") go(lines[0]);
    else if (event.key === "End") go(lines.at(-1));
    else if (event.key === "ArrowRight" && hasChildren)
      (isOpen(line) ? () => go(lines[at + 1]) : () => toggle(line, true))();
    else if (event.key === "ArrowLeft" && hasChildren && isOpen(line)) toggle(line, false);
    else if (event.key === "ArrowLeft") go(lines.find(({ node }) => node.key === line.parent));
    else if (event.key === "Enter") onOpen?.(line.node.key);
    else return;
    event.preventDefault();
  };
  return (
    <div ref={holder} class="tree" role="tree" aria-label={label} onKeyDown={move}>
      {lines.map((line, index) => (
        <div
          key={line.node.key}
          role="treeitem"
          class={`tree-line level-${Math.min(line.level, 8)}`}
          aria-level={line.level + 1}
          aria-setsize={line.size}
          aria-posinset={line.place}
          aria-selected={index === at}
          aria-expanded={line.node.children === undefined ? undefined : isOpen(line)}
          tabIndex={index === at ? 0 : -1}
          onClick={() => {
            go(line);
            if (line.node.children === undefined) onOpen?.(line.node.key);
            else toggle(line, !isOpen(line));
          }}
        >
          {line.node.children === undefined ? (
            <span class="twig" />
          ) : (
            <Icon name={isOpen(line) ? "down" : "right"} />
          )}
          {line.node.label}
        </div>
      ))}
    </div>
  );
}

import { Tree, type TreeNode } from "../../parts/tree.tsx";
import { shownText, type Part } from "./step.ts";

/** The parts of an expression with their types and values. The parts that decide are marked. */
export const PartsTree = ({ of: root }: { of: Part }) => (
  <Tree label="Parts of the expression" nodes={[nodeOf(root, "0")]} openLevels={4} />
);

const nodeOf = (part: Part, key: string): TreeNode => ({
  key,
  label: (
    <span class={`part ${part.decides ? "decides" : ""}`}>
      <code class="part-text">{shownText(part)}</code>
      <span class="part-type">{part.type}</span>
      <code class="part-value">{part.value ?? "missing"}</code>
      <span class="part-mark">{part.decides ? "decides" : ""}</span>
    </span>
  ),
  ...(part.children.length === 0
    ? {}
    : { children: part.children.map((child, index) => nodeOf(child, `${key}.${index}`)) }),
});

import type { Expression, Node } from "./ast.ts";

/** The names of the fields in an expression. */
export function fieldsOf({ root }: Expression): Set<string> {
  const names = new Set<string>();
  const visit = (node: Node): void => {
    switch (node.kind) {
      case "combining":
        node.items.forEach(visit);
        break;
      case "not":
      case "quantifier":
        visit(node.operand);
        break;
      case "comparison":
        visit(node.left);
        break;
      case "index":
        visit(node.base);
        break;
      case "call":
        node.args.forEach(visit);
        break;
      case "field":
        names.add(node.field.name);
        break;
      case "literal":
    }
  };
  visit(root);
  return names;
}

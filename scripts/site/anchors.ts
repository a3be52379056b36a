/**
 * The anchors of a page's headings, as GitHub derives them: letters, digits, `_` and `-`, with a counter for repeated
 * headings. Call the result once for each heading, in their order.
 */
export function anchorMaker(): (heading: string) => string {
  const used = new Set<string>();
  return (heading) => {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/ /g, "-");
    let anchor = slug;
    for (let count = 1; used.has(anchor); count++) anchor = `${slug}-${count}`;
    used.add(anchor);
    return anchor;
  };
}

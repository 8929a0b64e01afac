// The text that is looked for, marked where it is seen (CSS Custom Highlight API: the document is not changed).

const NAME = "found";
const MOST = 2000; // marks

/** Mark *q* in *parents*; an empty one marks nothing. */
export function markFound(parents, q) {
  const registry = CSS.highlights;
  if (!registry) return; // an older browser marks nothing
  registry.delete(NAME);
  if (!q) return;
  const ranges = [];
  for (const parent of parents) addRanges(ranges, parent, q.toLowerCase());
  registry.set(NAME, new Highlight(...ranges));
}

function addRanges(ranges, parent, q) {
  const walker = document.createTreeWalker(parent, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < MOST) {
    const node = walker.currentNode;
    const text = node.data.toLowerCase();
    if (text.length !== node.data.length) continue; // folding moved its letters
    for (let at = text.indexOf(q); at >= 0 && ranges.length < MOST; at = text.indexOf(q, at + q.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + q.length);
      ranges.push(range);
    }
  }
}

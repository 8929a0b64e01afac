// A long list of which only what is seen, and a little around it, is in the document.
//
// The window itself scrolls. `anchor` is the row at its top and how far into it; whatever changes above is made up for
// at once: every change of the document is measured where it is made (`change`, `#update`), and what the browser
// changes by itself, as when a fold opens, is measured before it is painted (ResizeObserver). So the heights are always
// those of the document, and a place that somebody scrolled to means what it meant to him.

import { Heights } from "./heights.js";

const AT_END = 32; // pixels
const AROUND = 1.5; // windows above and below what is seen

export class ScrollList {
  #list;
  #make;
  #estimate;
  #heights = new Heights();
  #ids = [];
  #places = null; // id → row; made when it is asked for
  #shown = new Map(); // row → element
  #anchor = { row: 0, into: 0 };
  #sticks = true; // to the end
  #isHeld = false; // until what was unfolded has its height
  #lastY = 0;
  #observer = new ResizeObserver(() => this.#measured());

  /** *make* (id, row) gives an element; *estimate* (id) its height in pixels; *scrolled* is told of each move. */
  constructor(list, { make, drop, estimate, scrolled, top }) {
    this.#list = list;
    this.#make = make;
    this.drop = drop;
    this.#estimate = estimate;
    this.scrolled = scrolled;
    this.top = top; // how much of the window a bar covers
    addEventListener("scroll", () => this.#onScroll(), { passive: true });
    addEventListener("resize", () => this.#restore());
    for (const around of [document.body, document.querySelector("header")]) this.#observer.observe(around);
  }

  get ids() {
    return this.#ids;
  }

  /** Whether the end is kept as more comes. */
  get isAtEnd() {
    return this.#sticks;
  }

  get isEndSeen() {
    return this.#sticks || this.#isEndSeen();
  }

  /** Show these ids instead; they begin at the end, or where *at* says ({id, into}). */
  show(ids, at = null) {
    this.#dropAll();
    this.#heights = new Heights();
    this.#ids = [];
    this.#places = null;
    this.#anchor = { row: 0, into: 0 };
    this.#sticks = at === null;
    this.append(ids);
    if (at) this.goTo(at.id, at.into);
  }

  append(ids) {
    this.#sync();
    for (const id of ids) {
      this.#places?.set(id, this.#ids.length);
      this.#ids.push(id);
      this.#heights.add(this.#estimate(id));
    }
    this.#restore();
  }

  /** Put other ids in their places, while what is seen stays. */
  replace(ids) {
    const at = this.position();
    const sticks = this.#sticks;
    this.show(ids, sticks || !at ? null : at);
  }

  /** Let *act* change elements of the list; what is seen stays where it is. */
  change(act) {
    this.#sync();
    act();
    this.#measure(this.#shown);
    this.#restore();
  }

  /** Stay here, whatever comes below: somebody has unfolded something. */
  hold() {
    this.#sync();
    this.#sticks = false;
    this.#isHeld = true;
    this.#takeAnchor();
  }

  /** The row of an id, or of the first one after it; -1 where there is none. */
  rowOf(id) {
    this.#places ??= new Map(this.#ids.map((one, row) => [one, row]));
    return this.#places.get(id) ?? this.#ids.findIndex((one) => one >= id);
  }

  elementOf(id) {
    return this.#shown.get(this.rowOf(id));
  }

  /** Bring an id, or the first one after it, to the top of what is seen, *into* pixels of it gone by. */
  goTo(id, into = 0) {
    const row = this.rowOf(id);
    if (row < 0) return this.goToEnd();
    this.#sticks = false;
    this.#anchor = { row, into };
    this.#restore();
    this.#lastY = scrollY;
  }

  goToEnd() {
    this.#sticks = true;
    this.#restore();
  }

  /** Bring an id into what is seen, moving as little as that takes. */
  reveal(id) {
    const row = this.rowOf(id);
    const [first, last] = [this.#heights.top(row), this.#heights.top(row + 1)];
    const [from, to] = this.#seen();
    if (first < from || last - first > to - from) this.goTo(id);
    else if (last > to) this.goTo(id, last - first - (to - from));
  }

  /** Where the window stands: {id, into}; null in an empty list. */
  position() {
    if (!this.#ids.length) return null;
    return { id: this.#ids[this.#anchor.row], into: this.#anchor.into };
  }

  /** The ids that are seen now, the first and the last. */
  seenIds() {
    const [from, to] = this.#seen();
    return [this.#ids[this.#heights.at(from)], this.#ids[this.#heights.at(to)]];
  }

  #origin() {
    return this.#list.getBoundingClientRect().top + scrollY;
  }

  // What of the list is seen, in its own pixels.
  #seen() {
    const from = scrollY - this.#origin() + this.top();
    return [from, from + innerHeight - this.top()];
  }

  #onScroll() {
    this.#sync();
    this.#restore();
  }

  // Take in where somebody has scrolled to.
  #sync() {
    if (scrollY === this.#lastY) return;
    const isUp = scrollY < this.#lastY;
    this.#lastY = scrollY;
    if (this.#isEndSeen()) this.#sticks = true;
    else if (isUp) this.#sticks = false;
    this.#takeAnchor();
  }

  #isEndSeen() {
    return scrollY + innerHeight >= document.documentElement.scrollHeight - AT_END;
  }

  #takeAnchor() {
    const [from] = this.#seen();
    const row = Math.max(0, this.#heights.at(from));
    this.#anchor = { row, into: from - this.#heights.top(row) };
  }

  // Bring the anchor, or the end, to where it belongs.
  #restore() {
    this.#update();
    for (let tries = 0; tries < 3; tries++) {
      const y = this.#wantedY();
      if (Math.abs(y - scrollY) < 1) break;
      scrollTo({ top: y, behavior: "instant" });
      this.#update();
    }
    this.#lastY = scrollY;
    if (this.#sticks) this.#takeAnchor();
    this.scrolled();
  }

  #wantedY() {
    const lowest = document.documentElement.scrollHeight - innerHeight;
    if (this.#sticks) return lowest;
    const y = this.#origin() + this.#heights.top(this.#anchor.row) + this.#anchor.into - this.top();
    return Math.max(0, Math.min(y, lowest));
  }

  // Have the rows near the window in the document, and padding for all others.
  #update() {
    let [from, to] = this.#seen();
    if (!this.#sticks) {
      from = this.#heights.top(this.#anchor.row) + this.#anchor.into;
      to = from + innerHeight;
    }
    const first = Math.max(0, this.#heights.at(from - AROUND * innerHeight));
    const end = this.#ids.length ? this.#heights.at(to + AROUND * innerHeight) + 1 : 0;
    for (const [row, shown] of this.#shown) if (row < first || row >= end) this.#dropRow(row, shown);
    const fresh = new Map();
    for (let row = end - 1; row >= first; row--) if (!this.#shown.has(row)) fresh.set(row, this.#showRow(row));
    this.#measure(fresh);
    this.#list.style.paddingTop = `${this.#heights.top(first)}px`;
    this.#list.style.paddingBottom = `${this.#heights.total - this.#heights.top(end)}px`;
  }

  #measure(rows) {
    for (const [row, shown] of rows) this.#heights.set(row, shown.getBoundingClientRect().height);
  }

  #showRow(row) {
    const made = this.#make(this.#ids[row], row);
    const after = this.#shown.get(row + 1) ?? [...this.#list.children].find((one) => one.row > row) ?? null;
    made.row = row;
    this.#list.insertBefore(made, after);
    this.#shown.set(row, made);
    this.#observer.observe(made);
    return made;
  }

  #dropRow(row, shown) {
    this.#observer.unobserve(shown);
    this.#shown.delete(row);
    this.drop(this.#ids[row]);
    shown.remove();
  }

  #dropAll() {
    for (const [row, shown] of this.#shown) this.#dropRow(row, shown);
  }

  #measured() {
    this.#sync();
    this.#measure(this.#shown);
    this.#restore();
    if (this.#isHeld && this.#isEndSeen()) this.#sticks = true;
    this.#isHeld = false;
  }
}

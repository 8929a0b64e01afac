// The message that keys are about, and how it moves: j, k, g, G.

const ROOM = 12; // pixels above a message that one goes to

export class Cursor {
  id = null;

  constructor(list) {
    this.list = list;
  }

  /** The message it is at, as long as that is seen; else the nearest to where one reads. */
  get here() {
    const [first, last] = this.list.seenIds();
    if (this.id !== null && this.id >= first && this.id <= last) return this.id;
    return this.list.isAtEnd ? last : first;
  }

  step(by) {
    const { ids } = this.list;
    if (!ids.length) return;
    const { here } = this;
    const row = this.list.rowOf(here) + (here === this.id ? by : 0);
    this.goToRow(Math.max(0, Math.min(ids.length - 1, row)));
  }

  goToRow(row) {
    const id = this.list.ids[row];
    if (id === undefined) return;
    if (row === this.list.ids.length - 1) this.list.goToEnd();
    else if (row === 0) this.list.goTo(id, -ROOM);
    else this.list.reveal(id);
    this.id = id;
    this.focus();
  }

  goToEnd() {
    this.list.goToEnd();
    this.id = this.list.ids.at(-1) ?? null;
  }

  focus() {
    this.list.elementOf(this.id)?.focus({ preventScroll: true });
  }

  /** Where the window stands when it shows message *id* first. */
  static at(id) {
    return { id, into: -ROOM };
  }
}

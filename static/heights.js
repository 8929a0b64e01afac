// How high each row of a long list is, and so where it stands. Pure.

export class Heights {
  #heights = new Float64Array(0);
  #tops = new Float64Array(1); // #tops[n]: where row n begins; right up to #sure
  #sure = 0;
  length = 0;

  add(height) {
    if (this.length === this.#heights.length) this.#grow();
    this.#heights[this.length++] = height;
  }

  #grow() {
    const room = Math.max(1024, this.length * 2);
    const heights = new Float64Array(room);
    const tops = new Float64Array(room + 1);
    heights.set(this.#heights);
    tops.set(this.#tops);
    this.#heights = heights;
    this.#tops = tops;
  }

  set(row, height) {
    if (this.#heights[row] === height) return;
    this.#heights[row] = height;
    this.#sure = Math.min(this.#sure, row);
  }

  /** Where *row* begins; of the row after the last: how high all are together. */
  top(row) {
    for (; this.#sure < row; this.#sure++) {
      this.#tops[this.#sure + 1] = this.#tops[this.#sure] + this.#heights[this.#sure];
    }
    return this.#tops[row];
  }

  get total() {
    return this.top(this.length);
  }

  /** The row at *y*; the first or the last where *y* is beyond them, -1 where there is none. */
  at(y) {
    this.top(this.length);
    let low = 0;
    let high = this.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#tops[middle] <= y) low = middle;
      else high = middle;
    }
    return this.length ? low : -1;
  }
}

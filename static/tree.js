// Asking the tree: GET, and listings as JSON. Nothing else is ever asked, and of no other server.

/** An answer that is not what was asked for. *status*: of HTTP; 0 where the server was not reached. */
export class Refused extends Error {
  constructor(status, said) {
    super(said || `status ${status}`);
    this.status = status;
  }
}

/** GET *path*. Rejects with Refused, or with an AbortError where *signal* says so. */
export async function ask(path, { headers = {}, signal } = {}) {
  let response;
  try {
    response = await fetch(path, { headers, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer");
  }
  if (!response.ok) throw new Refused(response.status, (await response.text()).trim().slice(0, 300));
  return response;
}

export async function list(path, options = {}) {
  return (await ask(path, { ...options, headers: { Accept: "application/json" } })).json();
}

/** What *asking* gives; [] where there is no such thing now, as when an agent has just ended. */
export async function orNothing(asking) {
  try {
    return await asking;
  } catch (error) {
    if (error.status === 404 || error.status === 410) return [];
    throw error;
  }
}

/** Facts of agents (title, cwd, status ...), read again only when their row in the listing has changed. */
export class Facts {
  #read = new Map();

  /** The facts called *names* among the *rows* of a listing, by name; "" for what is not there. */
  async of(rows, names) {
    const found = Object.fromEntries(names.map((name) => [name, ""]));
    const wanted = rows.filter((row) => row.type === "file" && names.includes(row.name));
    await Promise.all(wanted.map(async (row) => (found[row.name] = await this.#fact(row))));
    return found;
  }

  async #fact({ href, size, mtime }) {
    const known = this.#read.get(href);
    if (known?.size === size && known.mtime === mtime) return known.said;
    try {
      const said = (await (await ask(href)).text()).trimEnd();
      this.#read.set(href, { size, mtime, said });
      return said;
    } catch (error) {
      if (error.status !== 404) throw error;
      this.#read.delete(href);
      return "";
    }
  }
}

/** The names on the way to *path*, decoded. */
export function names(path) {
  return path.split("/").filter(Boolean).map(decodeURIComponent);
}

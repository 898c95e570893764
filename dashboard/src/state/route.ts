import { computed, signal } from "@preact/signals";

/** What the address says is on the screen: after the #, so that the page needs no other path. */
export interface Route {
  path: readonly string[];
  query: URLSearchParams;
}

/** Stands for an address that cannot be read: no page has this name. */
const unreadable = "?";

/** Reads a fragment: `#/locks/acme/orders%3A42?tab=queue`. What cannot be read is a page that there is not. */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  try {
    return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
  } catch {
    return { path: [unreadable], query: new URLSearchParams() };
  }
}

/** The address of a page. Empty values are left out. */
export function href(path: readonly string[], query: Record<string, string | undefined> = {}): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) q.set(name, value);
  const text = q.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

const hash = signal(location.hash);
export const route = computed(() => parseRoute(hash.value));

addEventListener("hashchange", () => {
  hash.value = location.hash;
});

/** Takes what is not a page's out of the address, and out of the history. */
export function bare(): void {
  history.replaceState(null, "", location.pathname);
  hash.value = location.hash;
}

/** Goes to an address. */
export function go(to: string): void {
  location.hash = to.slice(1);
}

/** Changes values of the query. A filter is no step to come back to, unless it is asked for. */
export function setQuery(changes: Record<string, string | undefined>, step = false): void {
  const { path, query } = route.value;
  const to = href(path, { ...Object.fromEntries(query), ...changes });
  if (step) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  hash.value = location.hash;
}

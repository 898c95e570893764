import { setQuery } from "../state/route";

interface Pages {
  /** The cursor of the page on the screen, if it is not the first. */
  at?: string | undefined;
  next?: string | undefined;
  /** What the buttons say. */
  first: string;
  more: string;
}

/** Turns the pages of a list whose cursor is in the address. */
export function Turn({ at, next, first, more }: Pages) {
  if (!at && !next) return null;
  return (
    <div class="row">
      {at && (
        <button type="button" onClick={() => setQuery({ cursor: "" }, true)}>
          {first}
        </button>
      )}
      {next && (
        <button type="button" onClick={() => setQuery({ cursor: next }, true)}>
          {more}
        </button>
      )}
    </div>
  );
}

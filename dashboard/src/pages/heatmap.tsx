import { useEffect } from "preact/hooks";
import type { Schemas } from "../api/client";
import { brief, shade, shades } from "../parts/scale";
import { Calm } from "../parts/signs";
import { many } from "../parts/words";
import { useEdges } from "../state/edges";
import { href } from "../state/route";
import { lockPage } from "./names";

type Map = Schemas["AdminHeatMap"];

/** How many cells one time above the map stands for. */
const together = 10;

/** How many waited for which lock in which step: a cell leads to that lock at that time. */
export function HeatMap({ of }: { of: Map }) {
  const any = of.rows.length > 0;
  const sheet = useEdges<HTMLDivElement>(any);
  // Where not all of it fits, what was last is what one wants to see.
  useEffect(() => sheet.current?.scrollTo({ left: sheet.current.scrollWidth }), [any]);
  if (!any) {
    return (
      <div class="sheet">
        <Calm title="No waiters">
          No lock had a waiter in the last 15 minutes, or since this replica started if that is shorter. A lock appears
          here when a request has to wait for it.
        </Calm>
      </div>
    );
  }
  return (
    <section class="stack" aria-labelledby="heat">
      <div class="head">
        <h2 id="heat">
          Most contended <span class="soft small">average number of waiters in each {of.step_seconds} s</span>
        </h2>
        <Legend />
      </div>
      <div class="sheet scroll" ref={sheet}>
        <Grid of={of} />
      </div>
      {of.truncated && <p class="soft">Other locks had fewer waiters than these.</p>}
    </section>
  );
}

function Grid({ of }: { of: Map }) {
  const begins = Date.parse(of.from);
  const at = of.rows[0]?.waiting.map((_, i) => new Date(begins + i * of.step_seconds * 1000).toISOString()) ?? [];
  return (
    <table class="heat" onKeyDown={move}>
      <caption class="unseen">Average number of waiters by lock and time. Arrow keys move from cell to cell.</caption>
      <thead>
        <tr>
          <th scope="col">Lock</th>
          {at.map(
            (t, i) =>
              i % together === 0 && (
                <th key={t} scope="colgroup" colSpan={Math.min(together, at.length - i)}>
                  <span>{t.slice(11, 16)} UTC</span>
                </th>
              ),
          )}
        </tr>
      </thead>
      <tbody>
        {of.rows.map((r) => (
          <tr key={`${r.tenant}/${r.name}`}>
            <th scope="row">
              <a data-row href={lockPage(r)} title={`${r.name} of ${r.tenant}`}>
                {r.name}
              </a>
            </th>
            {r.waiting.map((n, i) => (
              <Cell key={at[i]} lock={r} waiting={n} at={at[i] ?? ""} step={of.step_seconds} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell({ lock, waiting, at, step }: { lock: Schemas["HeatMapRow"]; waiting: number; at: string; step: number }) {
  if (waiting <= 0) return <td />;
  const words = `${lock.name}: ${many(waiting, "waiter")} on average from ${at.slice(11, 19)} UTC, for ${step} s`;
  return (
    <td class={`s${shade(waiting)}`}>
      <a tabIndex={-1} href={href(["locks", lock.tenant, lock.name], { at })} aria-label={words} title={words}>
        {brief(waiting)}
      </a>
    </td>
  );
}

/** What the shades mean. */
function Legend() {
  return (
    <ul class="legend small" aria-label="Waiters on average">
      <li>
        <i class="swatch s0" aria-hidden="true" />
        none
      </li>
      {shades.map((from, i) => {
        const below = shades[i + 1];
        return (
          <li key={from}>
            <i class={`swatch s${i + 1}`} aria-hidden="true" />
            {below === undefined ? `${from} or more waiters` : from === 0 ? `under ${below}` : `${from} to ${below}`}
          </li>
        );
      })}
    </ul>
  );
}

const ways: Partial<Record<string, readonly [number, number]>> = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
};

/** Goes to the next cell, in the direction of an arrow, that has waiters. */
function move(e: KeyboardEvent & { currentTarget: HTMLTableElement }): void {
  const way = ways[e.key];
  const cell = (e.target as HTMLElement).closest<HTMLTableCellElement>("th, td");
  const row = cell?.closest("tr");
  if (!way || !cell || !row) return;
  let [y, x] = [row.rowIndex + way[0], cell.cellIndex + way[1]];
  for (let next = e.currentTarget.rows[y]?.cells[x]; next; next = e.currentTarget.rows[y]?.cells[x]) {
    const link = next.querySelector("a");
    if (link) {
      e.preventDefault();
      link.focus();
      return;
    }
    [y, x] = [y + way[0], x + way[1]];
  }
}

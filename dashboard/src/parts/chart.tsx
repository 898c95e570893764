import type { ComponentChildren } from "preact";
import { ceiling, line } from "./scale";
import { utc } from "./words";

const width = 300;
const height = 72;

/** One line of a chart. The second is dashed, so that colour is not what tells them apart. */
export interface Line {
  name: string;
  values: readonly (number | undefined)[];
}

interface ChartOf {
  title: string;
  unit: string;
  lines: readonly Line[];
  /** When the steps begin, in the same order. */
  at: readonly string[];
  /** A value in words, with its unit. */
  say: (n: number) => string;
  /** Which step is meant, if one is. */
  mark?: number;
}

/** How something went, with what it is now. */
export function Chart({ title, unit, lines, at, say, mark }: ChartOf) {
  const top = ceiling(Math.max(0, ...lines.flatMap((l) => l.values.map((v) => v ?? 0))));
  const said = (n: number | undefined): string => (n === undefined ? "–" : say(n));
  const words = lines
    .map((l) => `${l.name} ${said(l.values.at(-1))} now, maximum ${said(greatest(l.values))}`)
    .join("; ");
  return (
    <figure class="sheet pad stack">
      <figcaption>
        <h3>
          {title} <span class="soft small">{unit}</span>
        </h3>
        {lines.map((l, i) => (
          <span key={l.name} class="key">
            <svg viewBox="0 0 24 8" aria-hidden="true" class="chart">
              <path class={i === 0 ? "line" : "line other"} d="M0 4H24" />
            </svg>
            <b>{said(l.values.at(-1))}</b> <span class="soft small">{l.name}</span>
          </span>
        ))}
      </figcaption>
      <svg
        viewBox={`0 -16 ${width} ${height + 34}`}
        class="chart"
        role="img"
        aria-label={`${title}, ${unit}: ${words}`}
      >
        <path class="axis" d={`M0 0H${width}M0 ${height}H${width}`} />
        {lines.length === 1 && lines.map((l) => <Area key={l.name} of={l} top={top} />)}
        {lines.map((l, i) => (
          <path key={l.name} class={i === 0 ? "line" : "line other"} d={line(l.values, top, width, height)} />
        ))}
        <text x={width} y="-5" text-anchor="end">
          {say(top)}
        </text>
        <text x="0" y={height + 14}>
          {at[0]?.slice(11, 16)} UTC
        </text>
        <text x={width} y={height + 14} text-anchor="end">
          now
        </text>
        {at.map((begins, i) => (
          <Step key={begins} marked={i === mark} x={(i / at.length) * width} wide={width / at.length}>
            {`${utc(begins)}\n${lines.map((l) => `${l.name}: ${said(l.values[i])}`).join("\n")}`}
          </Step>
        ))}
      </svg>
    </figure>
  );
}

function greatest(values: Line["values"]): number | undefined {
  const known = values.filter((v) => v !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

function Area({ of, top }: { of: Line; top: number }) {
  if (of.values.length < 2 || of.values.includes(undefined)) return null;
  return <path class="area" d={`${line(of.values, top, width, height)}V${height}H0Z`} />;
}

/** Where the pointer rests, what was then. */
function Step(of: { x: number; wide: number; marked: boolean; children: ComponentChildren }) {
  const { x, wide, marked, children } = of;
  return (
    <rect class={marked ? "when marked" : "when"} x={x} y="0" width={wide} height={height}>
      <title>{children}</title>
    </rect>
  );
}

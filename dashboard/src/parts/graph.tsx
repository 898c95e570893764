import { signal } from "@preact/signals";
import { brief } from "./words";

/** From one thing to another, and what is said of it. */
export interface Edge {
  from: string;
  to: string;
  label: string;
}

const width = 640;
const middle = width / 2;

/** The most nodes that are drawn: more of them are unreadable. */
export const mostNodes = 12;

interface Place {
  x: number;
  y: number;
}

interface Layout {
  at: Map<string, Place>;
  height: number;
  width: number;
}

/** Whether two readable labels do not fit next to each other. */
const small = matchMedia("(max-width: 40rem)");
const isNarrow = signal(small.matches);
small.addEventListener("change", () => {
  isNarrow.value = small.matches;
});

/** Where things stand: two beside each other, or where that is too wide, one below the other; more on a circle, the first at the top. */
export function placed(names: readonly string[], narrow = false): Layout {
  if (names.length <= 2 && narrow) {
    return { at: new Map(names.map((n, i) => [n, { x: 170, y: i === 0 ? 30 : 210 }])), height: 240, width: 340 };
  }
  if (names.length <= 2) {
    return { at: new Map(names.map((n, i) => [n, { x: i === 0 ? 130 : width - 130, y: 90 }])), height: 180, width };
  }
  const across = 60 + 22 * names.length;
  const at = names.map((n, i): [string, Place] => {
    const angle = (2 * Math.PI * i) / names.length - Math.PI / 2;
    return [n, { x: middle + 200 * Math.cos(angle), y: across + 45 + across * Math.sin(angle) }];
  });
  return { at: new Map(at), height: 2 * across + 90, width };
}

/** How far an edge bends to its left: what leads back bends to the other side, so that both are seen. */
const bend = 46;
/** How far from the middle of a thing an edge ends, so that its arrow is seen. */
const clear = { x: 96, y: 22 };

interface Curve {
  d: string;
  /** Where the words stand. */
  x: number;
  y: number;
}

/** An edge as a curve from the border of one thing to that of another. */
export function curve(from: Place, to: Place): Curve {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const long = Math.hypot(dx, dy) || 1;
  const top = { x: (from.x + to.x) / 2 + (dy / long) * 2 * bend, y: (from.y + to.y) / 2 - (dx / long) * 2 * bend };
  const [a, b] = [edgeOf(from, top), edgeOf(to, top)];
  const x = (a.x + 2 * top.x + b.x) / 4;
  const y = (a.y + 2 * top.y + b.y) / 4;
  const n = (v: number) => v.toFixed(1);
  return { d: `M${n(a.x)} ${n(a.y)}Q${n(top.x)} ${n(top.y)} ${n(b.x)} ${n(b.y)}`, x, y };
}

/** The point on the border of a thing that lies towards another. */
function edgeOf(of: Place, towards: Place): Place {
  const [dx, dy] = [towards.x - of.x, towards.y - of.y];
  const part = Math.min(clear.x / (Math.abs(dx) || 1e-9), clear.y / (Math.abs(dy) || 1e-9));
  return { x: of.x + dx * part, y: of.y + dy * part };
}

/**
 * Things, and what leads from one to another, as a drawing. Those who do not see it read what it is described by,
 * which is to say the same.
 */
export function Graph({ label, describedBy, edges }: { label: string; describedBy: string; edges: readonly Edge[] }) {
  const names = [...new Set(edges.flatMap((e) => [e.from, e.to]))];
  if (names.length > mostNodes) return null;
  const { at, height, width: wide } = placed(names, isNarrow.value);
  const place = (name: string): Place => at.get(name) ?? { x: wide / 2, y: 0 };
  const apart = wide < width ? 14 : 0; // what stands beside each other there would be one on the other
  const curves = edges.map((e) => ({
    key: `${e.from} ${e.to} ${e.label}`,
    label: e.label,
    ...curve(place(e.from), place(e.to)),
  }));
  return (
    <svg class="graph" viewBox={`0 0 ${wide} ${height}`} role="img" aria-label={label} aria-describedby={describedBy}>
      <defs>
        <marker
          id={`${describedBy}-tip`}
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="9"
          markerHeight="9"
          orient="auto"
        >
          <path class="tip" d="M0 0L8 4L0 8z" />
        </marker>
      </defs>
      {curves.map(({ key, d }) => (
        <path key={key} class="edge" d={d} marker-end={`url(#${describedBy}-tip)`} />
      ))}
      {curves.map(({ key, label, x, y }, i) => (
        <text key={key} x={x} y={y + 4 + (i % 2 === 0 ? -apart : apart)} text-anchor="middle">
          <title>{label}</title>
          {brief(label, 28)}
        </text>
      ))}
      {names.map((name) => {
        const { x, y } = place(name);
        return (
          <g key={name}>
            <rect class="thing" x={x - 90} y={y - 18} width="180" height="36" rx="8" />
            <text class="name" x={x} y={y + 5} text-anchor="middle">
              <title>{name}</title>
              {brief(name, 22)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

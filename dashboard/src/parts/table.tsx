import { type ComponentChildren, isValidElement, type VNode } from "preact";
import { useEdges } from "../state/edges";
import { Hint, type Term } from "./hint";

/** What stands above a column: its name, that of a column of numbers, or a head of its own; "" above actions. */
type Column = string | { number: string } | VNode;

interface TableOf {
  /** What it is a table of, for those who do not see it. */
  caption: string;
  columns: readonly Column[];
  class?: string;
  /** What is said below of rows that are not listed. */
  more?: ComponentChildren;
  children: ComponentChildren;
}

/** hints explains the columns with these names, in every table. */
const hints: Partial<Record<string, Term>> = {
  Fence: "fence",
  Lease: "lease",
  Mode: "mode",
  Position: "position",
  "Expired leases": "expired",
};

/**
 * A table on a sheet of its own. If it does not fit, it scrolls sideways and fades where it continues. On a phone
 * each row is a block: the style sheet puts the label of its column, `--label-1` and so on, before each cell.
 */
export function Table({ caption, columns, class: kind, more, children }: TableOf) {
  const sheet = useEdges<HTMLDivElement>();
  return (
    <div class="sheet scroll" ref={sheet}>
      <table class={kind} style={Object.fromEntries(columns.map((c, i) => [`--label-${i + 1}`, label(c)]))}>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>{columns.map(heading)}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
      {more && <p class="pad soft">{more}</p>}
    </div>
  );
}

/** What a cell of the column is labelled with, as CSS has strings. A head of its own has a `name`, or no label. */
function label(of: Column): string {
  const { number, props } = Object(of) as { number?: string; props?: { name?: string } };
  return JSON.stringify(typeof of === "string" ? of : (number ?? props?.name ?? ""));
}

function heading(of: Column): VNode {
  if (isValidElement(of)) return of;
  if (of === "") return <td key="act" class="act" />;
  const [name, kind] = typeof of === "string" ? [of, ""] : [(of as { number: string }).number, "number"];
  const hint = hints[name as string];
  return (
    <th key={name} scope="col" class={kind} abbr={hint && name}>
      {name}
      {hint && <Hint term={hint} />}
    </th>
  );
}

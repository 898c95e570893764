import { type ComponentChildren, isValidElement, type VNode } from "preact";
import { useEdges } from "../state/edges";

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

/** A table on a sheet of its own, which scrolls sideways where the page is narrow, and fades where it goes on. */
export function Table({ caption, columns, class: kind, more, children }: TableOf) {
  const sheet = useEdges<HTMLDivElement>();
  return (
    <div class="sheet scroll" ref={sheet}>
      <table class={kind}>
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

function heading(of: Column): VNode {
  if (isValidElement(of)) return of;
  if (of === "") return <td key="act" class="act" />;
  const [name, kind] = typeof of === "string" ? [of, ""] : [(of as { number: string }).number, "number"];
  return (
    <th key={name} scope="col" class={kind}>
      {name}
    </th>
  );
}

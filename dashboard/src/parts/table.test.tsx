import { render } from "@testing-library/preact";
import { expect, it } from "vitest";
import { Table } from "./table";

it("heads columns by what they have, and says what is not listed", () => {
  const { container } = render(
    <Table caption="Locks" columns={["Lock", { number: "Times" }, <th key="own">Own</th>, ""]} more={<b>and 3 more</b>}>
      <tr />
    </Table>,
  );
  const heads = [...container.querySelectorAll("thead tr > *")].map((h) => [h.tagName, h.className, h.textContent]);
  expect(heads).toEqual([
    ["TH", "", "Lock"],
    ["TH", "number", "Times"],
    ["TH", "", "Own"],
    ["TD", "act", ""],
  ]);
  // What the style sheet puts before each cell on a phone.
  const { style } = container.querySelector("table") as HTMLTableElement;
  expect([1, 2, 3, 4].map((n) => style.getPropertyValue(`--label-${n}`))).toEqual(['"Lock"', '"Times"', '""', '""']);
  expect(container.querySelector("caption")?.textContent).toBe("Locks");
  expect(container.textContent).toContain("and 3 more");
});

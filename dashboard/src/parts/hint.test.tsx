// @vitest-environment happy-dom
import { render } from "@testing-library/preact";
import { expect, it } from "vitest";
import { Hint } from "./hint";
import { Table } from "./table";

it("opens its own text, by a button with a question", () => {
  const { container } = render(
    <p>
      <Hint term="fence" />
      <Hint term="lease" />
    </p>,
  );
  const opened = [...container.querySelectorAll("button")].map((b) => {
    const text = container.querySelector(`[id="${b.getAttribute("popovertarget")}"]`);
    return [b.getAttribute("aria-label"), text?.getAttribute("popover"), text?.textContent?.slice(0, 22)];
  });
  expect(opened).toEqual([
    ["What is a fence?", "auto", "The number of a grant."],
    ["What is a lease?", "auto", "A holder keeps the loc"],
  ]);
});

it("explains the columns that need it, and no others", () => {
  const { container } = render(
    <Table caption="Locks" columns={["Lock", { number: "Fence" }]}>
      {null}
    </Table>,
  );
  const heads = [...container.querySelectorAll("th")].map((h) => [h.abbr, h.querySelector("button")?.title]);
  expect(heads).toEqual([
    ["", undefined],
    ["Fence", "What is a fence?"],
  ]);
});

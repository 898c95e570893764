import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import { inPlace, useSteady } from "./steady";

afterEach(cleanup);

interface Row {
  id: string;
  n: number;
}
const key = (r: Row): string => r.id;
const row = (id: string, n = 0): Row => ({ id, n });

it("leaves rows in their places, with what is new of them", () => {
  const before = [row("a"), row("b"), row("gone")];
  expect(inPlace(before, [row("new"), row("b", 2), row("a", 1)], key)).toEqual([row("a", 1), row("b", 2), row("gone")]);
});

function List({ all }: { all: readonly Row[] }) {
  const { rows, fresh, show, box } = useSteady<Row, HTMLDivElement>(all, key);
  return (
    <div>
      <button type="button" onClick={show}>
        {fresh}
      </button>
      <div ref={box}>
        {rows.map((r) => (
          <details key={r.id}>
            <summary>{r.id + r.n}</summary>
          </details>
        ))}
      </div>
    </div>
  );
}

it("moves no row while one is open, until that is asked for", async () => {
  const { container, rerender, findByText } = render(<List all={[row("a"), row("b")]} />);
  const shown = () => [...container.querySelectorAll("summary")].map((s) => s.textContent);
  rerender(<List all={[row("b"), row("a")]} />);
  expect(shown()).toEqual(["b0", "a0"]);
  container.querySelector("details")?.setAttribute("open", "");
  rerender(<List all={[row("c"), row("a", 1), row("b", 1)]} />);
  expect(shown()).toEqual(["b1", "a1"]);
  container.querySelector("button")?.click();
  await findByText("c0");
  expect(shown()).toEqual(["c0", "a1", "b1"]);
  expect(container.querySelector("button")?.textContent).toBe("0");
});

import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import { curve, Graph, mostNodes, placed } from "./graph";

afterEach(cleanup);

const edge = (from: string, to: string) => ({ from, to, label: `${from} first` });

it("draws both ways apart, each with who took it, and says what it is described by", () => {
  const { container, getByRole } = render(
    <Graph label="Orders" describedBy="text" edges={[edge("a", "b"), edge("b", "a")]} />,
  );
  expect(getByRole("img", { name: "Orders" }).getAttribute("aria-describedby")).toBe("text");
  const paths = [...container.querySelectorAll(".edge")].map((p) => p.getAttribute("d"));
  expect(new Set(paths).size).toBe(2);
  const { at } = placed(["a", "b"]);
  const [a, b] = [at.get("a") ?? { x: 0, y: 0 }, at.get("b") ?? { x: 0, y: 0 }];
  expect(curve(a, b).y).toBeLessThan(a.y);
  expect(curve(b, a).y).toBeGreaterThan(a.y);
  expect(container.textContent).toContain("a first");
  const drawn = [...(container.querySelector("svg")?.children ?? [])].map((c) => c.classList[0] ?? c.tagName);
  expect(drawn.lastIndexOf("edge")).toBeLessThan(drawn.indexOf("text")); // no edge is drawn over a word
  expect(container.querySelector("[style]")).toBeNull();
});

it("draws nothing of more things than can be told apart, and all others within its height", () => {
  const names = Array.from({ length: mostNodes + 1 }, (_, i) => `n${i}`);
  const ring = (all: string[]) => all.map((n, i) => edge(n, all[(i + 1) % all.length] ?? ""));
  const { container } = render(<Graph label="Orders" describedBy="text" edges={ring(names)} />);
  expect(container.querySelector("svg")).toBeNull();
  for (let n = 1; n <= mostNodes; n++) {
    const { at, height } = placed(names.slice(0, n));
    for (const { x, y } of at.values()) expect([x >= 90, x <= 550, y >= 18, y <= height - 18]).not.toContain(false);
  }
});

it("stands two things one below the other where there is no room beside each other", () => {
  const { at, width } = placed(["a", "b"], true);
  expect(width).toBeLessThan(360);
  const [a, b] = [at.get("a"), at.get("b")];
  expect([a?.x === b?.x, (b?.y ?? 0) - (a?.y ?? 0) > 100]).toEqual([true, true]);
});

import { render } from "@testing-library/preact";
import { expect, it } from "vitest";
import { Fence } from "./signs";

it("draws a post for each, up to what fits, and says the rest", () => {
  const { container, rerender } = render(<Fence holding={1} waiting={3} />);
  const posts = () => [
    container.querySelectorAll("i").length,
    container.querySelectorAll("i.waits").length,
    container.querySelector("b")?.textContent,
  ];
  expect(posts()).toEqual([4, 3, undefined]);
  rerender(<Fence holding={100} waiting={10_000} />);
  expect(posts()).toEqual([24, 18, "+9982"]);
  expect(container.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("100 holders, 10,000 waiters");
});

it("says in words what the posts say", () => {
  const { container } = render(<Fence holding={0} waiting={1} />);
  expect(container.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("1 waiter");
});

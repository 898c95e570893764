import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import { Failure } from "../api/client";
import { Fence, Loading } from "./signs";

afterEach(cleanup);

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

it("does not stay blank when the server is away before anything was loaded", () => {
  const page = render(<Loading />);
  const said = () => page.container.textContent;
  expect(said()).toBe("Loading…");
  page.rerender(<Loading failure={new Failure("unreachable", "away")} />);
  expect(said()).toContain("Nothing could be loaded");
  page.rerender(<Loading failure={new Failure("forbidden", "told elsewhere", 403)} />);
  expect(said()).toBe("");
});

it("says in words what the posts say", () => {
  const { container } = render(<Fence holding={0} waiting={1} />);
  expect(container.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("1 waiter");
});

import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import { Failure } from "../api/client";
import { Fence, Head, Loading } from "./signs";

afterEach(cleanup);

it("draws a post for each, up to what fits, and says the rest of each kind", () => {
  const { container, rerender } = render(<Fence holding={1} waiting={3} />);
  const posts = () => [
    container.querySelectorAll("i:not(.waits)").length,
    container.querySelectorAll("i.waits").length,
    [...container.querySelectorAll("b")].map((b) => b.textContent).join(" "),
  ];
  expect(posts()).toEqual([1, 3, ""]);
  rerender(<Fence holding={3} waiting={4} most={10} />);
  expect(posts()).toEqual([3, 4, ""]);
  rerender(<Fence holding={3} waiting={40} most={10} />);
  expect(posts()).toEqual([3, 7, "+33"]);
  rerender(<Fence holding={20} waiting={1} most={10} />);
  expect(posts()).toEqual([9, 1, "+11"]);
  rerender(<Fence holding={100} waiting={10_000} />);
  expect(posts()).toEqual([12, 12, "+88 +9,988"]);
  expect(container.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("100 holders, 10,000 waiters");
});

it("does not stay blank when the server is away before anything was loaded", () => {
  const page = render(<Loading />);
  const said = () => page.container.textContent;
  expect(said()).toBe("Loading…");
  page.rerender(<Loading failure={new Failure("unreachable", "away")} />);
  expect(said()).toContain("Nothing loaded yet");
  page.rerender(<Loading failure={new Failure("forbidden", "told elsewhere", 403)} />);
  expect(said()).toBe("");
});

it("calls the page by its title, in the tab too", () => {
  const page = render(<Head title="orders:42" />);
  expect(document.title).toBe("orders:42 – Fencepost");
  page.rerender(<Head title="https://example.org/secret" called="Webhook" />);
  expect(document.title).toBe("Webhook – Fencepost");
});

it("says in words what the posts say", () => {
  const { container } = render(<Fence holding={0} waiting={1} />);
  expect(container.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("1 waiter");
});

import { cleanup, render } from "@testing-library/preact";
import { afterEach, expect, it } from "vitest";
import { connection } from "../state/live";
import { Health } from "./overview";

afterEach(() => {
  cleanup();
  connection.value = "live";
});

it("says nothing of the store while the server is away", () => {
  const page = render(<Health store={{ current: true }} />);
  expect(page.container.textContent).toContain("Store connected");
  connection.value = "lost";
  page.rerender(<Health store={{ current: true }} />);
  expect(page.container.textContent).toBe("?Store unknown");
});

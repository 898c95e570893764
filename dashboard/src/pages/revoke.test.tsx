import { cleanup, fireEvent, render, waitFor } from "@testing-library/preact";
import { afterEach, expect, it, vi } from "vitest";
import { Failure, type Schemas } from "../api/client";
import { Revoke, refusal, statusOf, type Target } from "./revoke";

const target: Target = { id: "e1", holder: "stuck", fence: 7, held: true };

function view(holders: { id: string; fence: number }[], waiters: { id: string; number: number }[] = []) {
  return {
    tenant: "demo",
    name: "orders:1",
    holding: holders.length,
    waiting: waiters.length,
    holders: holders.map((h) => ({ ...h, holder: h.id, mode: "exclusive" })),
    waiters: waiters.map((w) => ({ ...w, holder: w.id, mode: "exclusive" })),
  } as unknown as Schemas["AdminLockView"];
}

const shuts = { close: () => {}, closeLock: () => {} };

afterEach(cleanup);

it("knows whether an entry is still the one that was seen", () => {
  expect(statusOf(view([{ id: "e1", fence: 7 }]), target)).toBe("same");
  expect(statusOf(view([{ id: "e1", fence: 9 }]), target)).toBe("other");
  expect(statusOf(view([{ id: "e2", fence: 9 }]), target)).toBe("gone");
  expect(statusOf(view([{ id: "e1", fence: 7 }]), { ...target, held: false })).toBe("holds");
  const many = view([{ id: "e2", fence: 9 }]);
  many.waiting = 5000; // the list has only some of them
  expect(statusOf(many, target)).toBe("gone"); // all who hold are listed
  many.holding = 200;
  expect(statusOf(many, target)).toBe("same");
  const waits: Target = { ...target, held: false };
  const line = view([{ id: "e2", fence: 3 }], [{ id: "e8", number: 8 }]);
  line.waiting = 5000;
  expect(statusOf(line, waits)).toBe("gone"); // it would stand before one that is listed
  expect(statusOf(line, { ...waits, fence: 9 })).toBe("same");
});

it("says of a refusal what it means", () => {
  expect(refusal(new Failure("changed", "", 409))).toContain("another fence");
  expect(refusal(new Failure("lock_lost", "", 410, "", "expired"))).toContain("lease expired");
  expect(refusal(new Failure("lock_lost", "", 410))).toContain("gone");
  expect(refusal(new Failure("store_unavailable", "The store is away.", 503, "", "", true))).toContain("safe to try");
  expect(refusal(new Failure("rate_limited", "Too many.", 429))).toBe("Not revoked: Too many.");
});

it("sends nothing without a reason and the lock's name, and then the fence that was seen", async () => {
  const sent: Request[] = [];
  vi.stubGlobal("fetch", async (r: Request) => {
    sent.push(r.clone() as Request);
    return Response.json({ id: "e1", tenant: "demo", locks: ["orders:1"], holder: "stuck", fence: 7, held: true });
  });
  const done = vi.fn();
  const page = render(<Revoke target={target} view={view([{ id: "e1", fence: 7 }])} {...shuts} done={done} />);
  const form = page.container.querySelector("form") as HTMLFormElement;
  const type = (label: RegExp, value: string) => fireEvent.input(page.getByLabelText(label), { target: { value } });
  fireEvent.submit(form);
  type(/Reason/, "  123456789  ");
  type(/to confirm/, "orders:1");
  fireEvent.submit(form);
  type(/Reason/, "its node is gone");
  type(/to confirm/, "orders:10");
  fireEvent.submit(form);
  expect(sent).toHaveLength(0);
  type(/to confirm/, "orders:1");
  fireEvent.submit(form);
  await waitFor(() => expect(done).toHaveBeenCalledOnce());
  expect(new URL(sent[0]?.url ?? "").pathname).toBe("/admin/locks/demo/orders%3A1/entries/e1/revoke");
  expect(await sent[0]?.json()).toEqual({ fence: 7, reason: "its node is gone" });
});

it("leaves nothing to fill in once what was seen has left, and says nothing of what would come of it", async () => {
  const seen = view([{ id: "e1", fence: 7 }], [{ id: "e2", number: 9 }]);
  const page = render(<Revoke target={target} view={seen} {...shuts} done={() => {}} />);
  expect(page.container.textContent).toContain("Granted next: e2");
  const left = view([{ id: "e2", fence: 9 }]);
  page.rerender(<Revoke target={target} view={left} {...shuts} done={() => {}} />);
  expect(page.container.textContent).toContain("nothing to revoke");
  expect(page.getByText("Close lock…")).toBeTruthy();
  expect(page.container.textContent).not.toMatch(/keeps it|may still be writing|Granted next/);
  expect(page.container.querySelector("form, input")).toBeNull();
});

it("lets one ask again when nobody knows whether it was revoked", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("network error");
  });
  const seen = view([{ id: "e1", fence: 7 }]);
  const page = render(<Revoke target={target} view={seen} {...shuts} done={() => {}} />);
  const type = (label: RegExp, value: string) => fireEvent.input(page.getByLabelText(label), { target: { value } });
  type(/Reason/, "its node is gone");
  type(/to confirm/, "orders:1");
  fireEvent.submit(page.container.querySelector("form") as HTMLFormElement);
  await waitFor(() => expect(page.container.textContent).toContain("may be revoked"));
  page.rerender(<Revoke target={target} view={view([])} {...shuts} done={() => {}} />);
  expect(page.container.querySelector("form")).not.toBeNull();
  expect(page.container.textContent).not.toContain("may still be writing");
});

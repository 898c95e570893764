import type { Page } from "@playwright/test";

/** Something on a page: the first element that the selector finds, once it has the text. */
interface Shown {
  selector: string;
  text: string;
}

/**
 * How long a page takes from an act in it, a press or another address, until it has drawn something, in
 * milliseconds.
 */
export async function timed(page: Page, act: { press: string } | { hash: string }, shown: Shown): Promise<number> {
  return page.evaluate(
    ([act, { selector, text }]) =>
      new Promise<number>((resolve) => {
        const from = performance.now();
        const watcher = new MutationObserver(() => {
          if (!document.querySelector(selector)?.textContent?.includes(text)) return;
          watcher.disconnect();
          requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - from))); // after it is drawn
        });
        watcher.observe(document.body, { subtree: true, childList: true, characterData: true });
        if ("hash" in act) location.hash = act.hash;
        else document.querySelector<HTMLElement>(act.press)?.click();
      }),
    [act, shown] as const,
  );
}

/** How long each frame of the page took while something was done to it, in milliseconds. */
export async function framesWhile(page: Page, doing: () => Promise<void>): Promise<number[]> {
  await page.evaluate(() => {
    const frames: number[] = [];
    let before = performance.now();
    const frame = (at: number): void => {
      frames.push(at - before);
      before = at;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    Object.assign(window, { frames });
  });
  await doing();
  return page.evaluate(() => (window as unknown as { frames: number[] }).frames.slice(1));
}

/** How something that has a row of its own comes to be, and how it goes again. */
interface Changing<T> {
  come: (name: string) => Promise<T>;
  go: (name: string, made: T) => Promise<void>;
}

/** How many changes there are in a round of either kind: so many rows fit on a page. */
const inARound = 40;

/**
 * How late changes are seen on a page, in milliseconds: from the server's answer to the change, until
 * the frame is drawn in which the row, whose link has its name, has come, or has gone. Both are times of one clock.
 */
export async function changesSeen<T>(page: Page, rounds: number, of: Changing<T>): Promise<number[]> {
  await page.evaluate(noteRows);
  const late: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const names = Array.from({ length: inARound }, (_, i) => `${round}:${String(i).padStart(2, "0")}`);
    const made = new Map<string, T>();
    late.push(...(await drawn(page, names, true, async (name) => void made.set(name, await of.come(name)))));
    late.push(...(await drawn(page, names, false, async (name) => of.go(name, made.get(name) as T))));
  }
  return late;
}

/** Makes a change of each name, some 20 a second in no step with the server's turns, and returns how late each was drawn. */
async function drawn(
  page: Page,
  names: string[],
  there: boolean,
  change: (name: string) => Promise<void>,
): Promise<number[]> {
  const answered = new Map<string, number>();
  for (const name of names) {
    await change(name);
    answered.set(name, performance.timeOrigin + performance.now());
    await new Promise((resolve) => setTimeout(resolve, 30 + Math.random() * 40));
  }
  const seen = await page.waitForFunction(seenAt, { names, there });
  const at = (await seen.jsonValue()) as Record<string, number>;
  return names.map((name) => Math.max(0, (at[name] ?? Number.POSITIVE_INFINITY) - (answered.get(name) ?? 0)));
}

/** In the page: notes when each row that has a name is first drawn, and when it is not any more. */
function noteRows(): void {
  const notes = { come: {} as Record<string, number>, gone: {} as Record<string, number> };
  const look = (): void => {
    const names = new Set(
      [...document.querySelectorAll("td.name a")].map((a) => (a.textContent ?? "").split("seen:")[1]),
    );
    requestAnimationFrame(() =>
      setTimeout(() => {
        const now = performance.timeOrigin + performance.now();
        for (const name of names) if (name !== undefined) notes.come[name] ??= now;
        for (const name in notes.come) if (!names.has(name)) notes.gone[name] ??= now;
      }),
    );
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  Object.assign(window, { notes });
}

/** In the page: when each of some was seen to come, or to go; nothing until all were. */
function seenAt({ names, there }: { names: string[]; there: boolean }): Record<string, number> | false {
  const { notes } = window as unknown as { notes: Record<"come" | "gone", Record<string, number>> };
  const at = notes[there ? "come" : "gone"];
  return names.every((name) => name in at) && at;
}

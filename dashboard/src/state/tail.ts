import { signal } from "@preact/signals";
import type { Failure, Schemas } from "../api/client";
import { follow, type Message } from "../api/sse";
import { alive, outcome, patience, sleep } from "./live";

export type Event = Schemas["Event"] & { id: string };

/** How many events are on the screen at most, and how many are kept while it is paused. */
export const most = 200;

/** Tail follows what happens, the newest first. */
export class Tail {
  readonly shown = signal<readonly Event[]>([]);
  readonly behind = signal(0);
  readonly failure = signal<Failure | undefined>(undefined);
  readonly open = signal(false);

  private waiting: Event[] = [];
  private still = false;
  private timer = 0;

  /** Begins after an event; with "" at what happens from now on. */
  constructor(private lastId = "") {}

  /** Follows a stream of events until the signal aborts it. Run again, it goes on where that was. */
  async run(path: string, stop: AbortSignal): Promise<void> {
    for (let failures = 0; !stop.aborted; ) {
      try {
        this.lastId =
          (await follow(path, {
            signal: stop,
            lastId: this.lastId,
            opened: () => {
              failures = 0;
              this.open.value = true;
              this.failure.value = undefined;
              alive();
            },
            came: alive,
            told: (m) => {
              this.lastId = m.id;
              this.take(m);
            },
          })) || this.lastId;
      } catch (e) {
        if (stop.aborted) return;
        this.failure.value = outcome(e);
        failures++;
      }
      this.open.value = false;
      await sleep(patience(failures, 1000), stop);
    }
  }

  /** Holds back what comes, or shows what was held back. */
  hold(still: boolean): void {
    this.still = still;
    if (!still) this.show();
  }

  private take(m: Message): void {
    const event = parse(m);
    if (event === undefined) return;
    this.waiting.push(event);
    if (this.waiting.length > most) this.waiting.shift();
    if (this.still) this.behind.value = Math.min(most, this.behind.value + 1);
    // Four times a second is as often as anybody can look.
    else if (this.timer === 0) this.timer = setTimeout(() => this.show(), 250) as unknown as number;
  }

  private show(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.still) return;
    this.behind.value = 0;
    if (this.waiting.length === 0) return;
    this.shown.value = [...this.waiting.reverse(), ...this.shown.value].slice(0, most);
    this.waiting = [];
  }
}

function parse(m: Message): Event | undefined {
  try {
    return { ...(JSON.parse(m.data) as Schemas["Event"]), id: m.id };
  } catch {
    return undefined;
  }
}

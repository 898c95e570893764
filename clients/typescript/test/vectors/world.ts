import type { Clock, Reading } from "@fencepost/client";

interface Timer {
  at: number;
  run: () => void;
}

/** Virtual time: the clocks of a client, and what is due. */
export class World implements Clock {
  now = 0;
  slept = 0; // what the monotonic clock does not show
  set = 0; // by which the wall clock was set
  readonly #boot: boolean;
  readonly #timers: Timer[] = [];

  constructor(boot: boolean) {
    this.#boot = boot;
  }

  read(): Reading {
    const passed = this.now + this.slept;
    return {
      monotonic: this.now,
      boot: this.#boot ? 60 + passed : undefined,
      wall: 3600 + passed + this.set,
    };
  }

  timer = (seconds: number, run: () => void): (() => void) => {
    const timer = { at: this.now + Math.max(seconds, 0), run };
    const after = this.#timers.findIndex((other) => other.at > timer.at);
    this.#timers.splice(after < 0 ? this.#timers.length : after, 0, timer);
    return () => {
      const at = this.#timers.indexOf(timer);
      if (at >= 0) {
        this.#timers.splice(at, 1);
      }
    };
  };

  /** Runs what is due until then, in order. */
  async runUntil(seconds: number): Promise<void> {
    await settle();
    for (;;) {
      const timer = this.#timers[0];
      if (!timer || timer.at > Math.max(seconds, this.now)) {
        break;
      }
      this.#timers.shift();
      this.now = Math.max(this.now, timer.at);
      timer.run();
      await settle();
    }
    this.now = Math.max(this.now, seconds);
  }
}

/** Lets everything run that can, until all of it waits for the transport or a timer. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

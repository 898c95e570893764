import type { Acquisition } from "./acquire.js";
import type { Core } from "./core.js";
import type { Held } from "./held.js";
import { calling, check } from "./options.js";

/** An entry that the servers keep in its queue without a connection, for as long as its wait. */
export class Pending {
  readonly #core: Core;
  readonly #acquisition: Acquisition;
  /** Of the entry, as callbacks and events have it. */
  readonly id: string;

  /** @internal */
  constructor(core: Core, acquisition: Acquisition) {
    this.#core = core;
    this.#acquisition = acquisition;
    this.id = acquisition.entry?.id ?? "";
  }

  /**
   * Waits for the grant and claims it; where there is a callback, claim the grant instead. If the
   * signal is aborted first, the entry keeps its position, and you can wait again. Fails with a
   * {@link LockLost} if the grant was not claimed in time.
   */
  async wait(options: { signal?: AbortSignal } = {}): Promise<Held> {
    check(options, calling);
    return this.#acquisition.run(options.signal);
  }

  /** Leaves the queue, or releases a grant that was not claimed. It tries for one TTL. */
  async leave(options: { signal?: AbortSignal } = {}): Promise<void> {
    check(options, calling);
    this.#core.throwIfClosed();
    return this.#core.leave((signal) => this.#acquisition.leave(signal), options.signal);
  }
}

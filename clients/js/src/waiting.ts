// Waiting for time to pass, and for one of several events.

/** Waits for some milliseconds. Rejects with the reason of the signal, if it ends the wait. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const bell = new Bell();
  const done = Date.now() + ms;
  const ring = (): void => bell.ring();
  signal?.addEventListener("abort", ring, { once: true });
  try {
    while (Date.now() < done) {
      signal?.throwIfAborted();
      await bell.heard(done);
    }
    signal?.throwIfAborted();
  } finally {
    signal?.removeEventListener("abort", ring);
  }
}

/** Wakes the one that waits for it. A ring that comes before the wait is not lost. */
export class Bell {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Returns after a ring, or at a time. */
  async heard(until: number): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        // A timer waits for no longer than this.
        const ms = Math.min(Math.max(until - Date.now(), 0), 2 ** 31 - 1);
        const timer = until === Infinity ? undefined : setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = undefined;
    this.#rung = false;
  }
}

// How long to go on after failures, and how long to wait between two tries.

/** The first pause; each one after it is about twice as long, … */
export const FIRST_PAUSE = 100;

/** … up to this, and as long again by chance. So clients that failed together come back at different times. */
const LONGEST_PAUSE = 5000;

/** Report failures that last longer than this. Shorter ones end before a person reads the report. */
const REPORT_AFTER = 1000;

/** The pause before a try, in milliseconds: at least what the server asks for. */
export function pauseBefore(attempt: number, asked = 0, random = Math.random): number {
  const grown = Math.min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE);
  return Math.max(grown, asked) * (1 + random());
}

/** How long to go on retrying what fails. Times are in milliseconds. */
export class Patience {
  readonly #limit: number;
  #failing: { since: number; pauses: number; told: boolean } | undefined;

  /** Allows retries until `limit` after the first attempt that failed had begun. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Notes a failure: how long to wait before the next try, or undefined if it has gone on for too long. */
  afterFailure(began: number, now: number, asked?: number): number | undefined {
    this.#failing ??= { since: began, pauses: 0, told: false };
    const left = this.#failing.since + this.#limit - now;
    if (left <= 0) return undefined;
    // The next try needs time as well: retries end with the patience.
    const longest = Math.min(Math.max(left / 2, FIRST_PAUSE), left);
    return Math.min(pauseBefore(this.#failing.pauses++, asked), longest);
  }

  /** When retries end, if the last attempt failed. */
  get end(): number {
    return this.#failing ? this.#failing.since + this.#limit : Infinity;
  }

  /** The time left for retries, if the failures should be reported now. Once, until something succeeds. */
  overdue(now: number): number | undefined {
    if (!this.#failing || this.#failing.told) return undefined;
    const failed = now - this.#failing.since;
    this.#failing.told = failed >= REPORT_AFTER;
    return this.#failing.told ? Math.max(this.#limit - failed, 0) : undefined;
  }

  /** Notes that something succeeded. */
  afterProgress(): void {
    this.#failing = undefined;
  }
}

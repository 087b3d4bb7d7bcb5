// What a search takes.

import type { CallOptions } from "./calls.js";
import { checkedCount } from "./checks.js";

/** What matches are listed. */
export interface SearchOptions {
  /** The largest distance of a match, in bits; at most that of the corpus, and that if it is not set. */
  maxDistance?: number | undefined;
  /** List at most this many ids a match, the smallest first. All if it is not set. */
  maxIds?: number | undefined;
}

/** How to find the nearest match. */
export interface FindFirstOptions extends SearchOptions, CallOptions {
  /** If nodes do not answer: take what the others hold, and say in `missing` what may be missing, instead of failing. */
  allowPartial?: boolean | undefined;
}

/** How to find all matches. */
export interface FindOptions extends FindFirstOptions {
  /** At most this many matches a query, the nearest. All if it is not set. */
  limit?: number | undefined;
}

/** The fields of a request. */
export interface Spec {
  maxDistance?: number;
  maxIds: number;
  limit: number;
  allowPartial: boolean;
}

/** @throws TypeError or RangeError that names the option. A number of zero would mean all. */
export function checkedSpec(options: FindOptions): Spec {
  const { maxDistance, maxIds, limit, allowPartial } = options;
  return {
    ...(maxDistance === undefined ? {} : { maxDistance: checkedCount(maxDistance, "maxDistance") }),
    maxIds: atLeastOne(maxIds, "maxIds"),
    limit: atLeastOne(limit, "limit"),
    allowPartial: allowPartial ?? false,
  };
}

function atLeastOne(count: number | undefined, name: string): number {
  if (count === undefined) return 0;
  if (checkedCount(count, name) === 0) throw new RangeError(`${name} is 0: leave it out to have all`);
  return count;
}

// The names of the options. Types name them for TypeScript alone.

import type { CallOptions } from "./calls.js";
import type { ClientOptions, CreateOptions } from "./client.js";
import type { FindStreamOptions, WholeOptions } from "./corpus.js";
import type { FindFirstOptions, FindOptions, SearchOptions } from "./searches.js";
import type { StreamOptions } from "./streams.js";

type Names<T> = readonly (keyof T)[];

const SEARCH = ["maxDistance", "maxIds"] as const satisfies Names<SearchOptions>;

export const CALL = ["timeoutMs", "signal"] as const satisfies Names<CallOptions>;
export const CREATE = [...CALL, "blocks", "distance", "recipe"] as const satisfies Names<CreateOptions>;
export const FIND_FIRST = [...CALL, ...SEARCH, "allowPartial"] as const satisfies Names<FindFirstOptions>;
export const FIND = [...FIND_FIRST, "limit"] as const satisfies Names<FindOptions>;
export const STREAM = ["batchSize", "timeoutMs", "patienceMs", "signal"] as const satisfies Names<StreamOptions>;
export const FIND_FIRST_STREAM = [...STREAM, ...SEARCH] as const satisfies Names<SearchOptions & StreamOptions>;
export const FIND_STREAM = [...FIND_FIRST_STREAM, "limit"] as const satisfies Names<FindStreamOptions>;
export const SCAN = ["signal"] as const;
export const WHOLE = [...SCAN, "maxDistance"] as const satisfies Names<WholeOptions>;
export const CLIENT = [
  "timeoutMs",
  "patienceMs",
  "recipe",
  "onWaiting",
  "ca",
  "cert",
  "key",
  "token",
] as const satisfies Names<ClientOptions>;

/** @throws TypeError that names an option that there is not: it would be ignored without a word. */
export function checkOptions(options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new TypeError(`there is no option ${unknown} here, but ${known.join(", ")}`);
}

// Documents and queries as columns, as requests have them.

import { checkedFingerprint, checkedString } from "./checks.js";

/** Fingerprints, or texts that the server turns into fingerprints by the recipe of the corpus. */
export type Queries = { fingerprints: ArrayLike<bigint> } | { texts: ArrayLike<string> };

/** Documents as columns: one fingerprint or text each, and one id each or no ids at all. */
export type Documents = Queries & { ids?: ArrayLike<string> };

/** Queries in the columns of a message, one of them empty. */
export interface QueryColumns {
  fingerprints: bigint[];
  texts: string[];
}

/** Documents in the columns of a message. */
export interface DocumentColumns extends QueryColumns {
  ids: string[];
}

/**
 * Queries as a message has them.
 *
 * @throws TypeError or RangeError that names the place of what is wrong, such as `fingerprints[3]`.
 */
export function queryColumns(queries: Queries): QueryColumns {
  const { fingerprints, texts } = queries as { fingerprints?: ArrayLike<bigint>; texts?: ArrayLike<string> };
  if ((fingerprints === undefined) === (texts === undefined)) {
    throw new TypeError("set one of fingerprints and texts");
  }
  return {
    fingerprints: column(fingerprints, "fingerprints", checkedFingerprint),
    texts: column(texts, "texts", checkedString),
  };
}

/**
 * Documents as a message has them.
 *
 * @throws TypeError or RangeError as `queryColumns`, and if there are more or fewer ids than documents.
 */
export function documentColumns(documents: Documents): DocumentColumns {
  const columns = queryColumns(documents);
  const ids = column(documents.ids, "ids", checkedString);
  const count = lengthOf(columns);
  if (documents.ids !== undefined && ids.length !== count) {
    throw new RangeError(`there are ${ids.length} ids for ${count} documents: give one each, or no ids at all`);
  }
  return { ...columns, ids };
}

/** Number of queries. */
export function lengthOf(columns: QueryColumns): number {
  return columns.fingerprints.length + columns.texts.length;
}

/** Queries in two halves; undefined if there is only one. */
export function halves(columns: QueryColumns): [QueryColumns, QueryColumns] | undefined {
  const count = lengthOf(columns);
  if (count < 2) return undefined;
  const part = (from: number, to: number): QueryColumns => ({
    fingerprints: columns.fingerprints.slice(from, to),
    texts: columns.texts.slice(from, to),
  });
  const middle = Math.floor(count / 2);
  return [part(0, middle), part(middle, count)];
}

function column<T>(
  values: ArrayLike<T> | undefined,
  name: string,
  checked: (value: unknown, place: string) => T,
): T[] {
  if (values === undefined) return [];
  if (typeof values !== "object" || values === null || typeof values.length !== "number") {
    throw new TypeError(`${name} is no array`);
  }
  return Array.from(values, (value, index) => checked(value, `${name}[${index}]`));
}

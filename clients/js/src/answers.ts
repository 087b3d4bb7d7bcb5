// The answers to searches, as rows.

import type { Completeness, Matches } from "./gen/simshard/v1/matches_pb.js";
import { malformed } from "./errors.js";

/** A stored fingerprint near a query. */
export interface Match {
  /** The position of the query in the input. */
  query: number;
  /** The stored fingerprint. */
  fingerprint: bigint;
  /** Its distance from the query, in bits. */
  distance: number;
  /** The ids of the documents that carry it, ascending, as many as were asked for. A document without one has "". */
  ids: string[];
  /** Number of documents that carry it. */
  documentCount: number;
}

/** The matches that a partial answer may lack for a query. */
export interface Missing {
  /** The position of the query in the input. */
  query: number;
  /** Every match up to this distance is listed; -1 if nothing is certain. */
  guaranteedDistance: number;
}

/** The answer to a search: its matches, by query, distance, and fingerprint. */
export class Found implements Iterable<Match> {
  readonly matches: Match[] = [];
  /** The fingerprint of each query, in their order: those of texts too. */
  readonly fingerprints: bigint[] = [];
  /** The positions of the queries that have more matches than `limit`. */
  readonly truncated: number[] = [];
  /** What may be missing, where `allowPartial` is set and nodes do not answer. */
  readonly missing: Missing[] = [];
  /** The nodes that did not answer. */
  readonly unreachableNodes: string[] = [];

  [Symbol.iterator](): Iterator<Match> {
    return this.matches[Symbol.iterator]();
  }

  /** Adds the answer to the queries that follow. */
  add(answer: Answer): void {
    const start = this.fingerprints.length;
    for (const match of rows(answer, start)) this.matches.push(match);
    for (const fingerprint of answer.queries) this.fingerprints.push(fingerprint);
    answer.matches?.truncated.forEach((isCut, query) => isCut && this.truncated.push(start + query));
    const { completeness } = answer;
    completeness?.guaranteedDistances.forEach((guaranteedDistance, query) => {
      const isMissing = completeness.missingLeadGroups[query] !== 0n;
      if (isMissing) this.missing.push({ query: start + query, guaranteedDistance });
    });
    const nodes = new Set([...this.unreachableNodes, ...(completeness?.unreachableNodes ?? [])]);
    this.unreachableNodes.splice(0, Infinity, ...nodes);
  }
}

/** What the answers of all searches have. */
export interface Answer {
  queries: bigint[];
  matches?: Matches | undefined;
  completeness?: Completeness | undefined;
}

/** Walks the columns of an answer. The first query has the position `start`. */
export function* rows(answer: Answer, start: number): Generator<Match, void, undefined> {
  const { matches, queries } = answer;
  if (!matches) {
    if (queries.length > 0) throw malformed("it has no matches");
    return;
  }
  check(matches, queries.length);
  let row = 0;
  let id = 0;
  for (const [query, count] of matches.matchCounts.entries()) {
    for (const end = row + count; row < end; row++) {
      const firstId = id;
      id += at(matches.idCounts, row);
      yield {
        query: start + query,
        fingerprint: at(matches.fingerprints, row),
        distance: at(matches.distances, row),
        ids: matches.ids.slice(firstId, id),
        documentCount: Number(at(matches.documentCounts, row)),
      };
    }
  }
}

/** The columns fit each other. */
function check(matches: Matches, queries: number): void {
  const found = sum(matches.matchCounts);
  const { matchCounts, truncated, fingerprints, distances, documentCounts, idCounts, ids } = matches;
  checkLengths({ matchCounts, truncated }, queries);
  checkLengths({ fingerprints, distances, documentCounts, idCounts }, found);
  checkLengths({ ids }, sum(idCounts));
}

/** Refuses columns of another length. */
export function checkLengths(columns: Record<string, ArrayLike<unknown>>, expected: number): void {
  for (const [name, column] of Object.entries(columns)) {
    if (column.length !== expected) {
      throw malformed(`the column ${name} has ${column.length} elements, not ${expected}`);
    }
  }
}

export function sum(counts: number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** An element that is there, as the lengths were checked. */
export function at<T>(column: readonly T[], index: number): T {
  return column[index] as T;
}

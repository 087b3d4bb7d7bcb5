// The rows of streams about whole corpora.

import { at, checkLengths, sum } from "./answers.js";
import { malformed } from "./errors.js";
import type {
  FindClustersResponse,
  FindPairsResponse,
  ScanResponse,
} from "./gen/simshard/v1/corpus_service_pb.js";

/** A document of a corpus. */
export interface StoredDocument {
  fingerprint: bigint;
  /** Its id; empty for a bare fingerprint. */
  id: string;
}

/** Two documents that are near each other. */
export interface Pair {
  fingerprintA: bigint;
  idA: string;
  /** The other fingerprint, which is not smaller. */
  fingerprintB: bigint;
  idB: string;
  /** The distance between the two fingerprints, in bits. */
  distance: number;
}

/** A document of a cluster. */
export interface ClusterMember extends StoredDocument {
  /** The cluster: the smallest fingerprint in it, which no other cluster has. */
  cluster: bigint;
}

export function* scanned(answer: ScanResponse): Generator<StoredDocument, void, undefined> {
  const { fingerprints, ids } = answer;
  if (ids.length > 0) checkLengths({ ids }, fingerprints.length);
  for (const [row, fingerprint] of fingerprints.entries()) yield { fingerprint, id: ids[row] ?? "" };
}

export function* members(answer: FindClustersResponse): Generator<ClusterMember, void, undefined> {
  const { clusters, fingerprints, ids } = answer;
  checkLengths({ clusters }, fingerprints.length);
  if (ids.length > 0) checkLengths({ ids }, fingerprints.length);
  for (const [row, fingerprint] of fingerprints.entries()) {
    yield { cluster: at(clusters, row), fingerprint, id: ids[row] ?? "" };
  }
}

/** Documents with one fingerprint. */
interface Group {
  fingerprint: bigint;
  ids: string[];
}

/** A row stands for all pairs between its groups, or within one: n documents make n (n - 1) / 2. */
export function* pairs(answer: FindPairsResponse): Generator<Pair, void, undefined> {
  const { lefts, rights, distances } = answer;
  checkLengths({ rights, distances }, lefts.length);
  const all = groups(answer);
  for (const [row, distance] of distances.entries()) {
    const left = all[at(lefts, row)];
    const right = all[at(rights, row)];
    if (!left || !right) throw malformed("a pair of a group that is not there");
    for (const [place, idA] of left.ids.entries()) {
      for (let other = left === right ? place + 1 : 0; other < right.ids.length; other++) {
        const idB = at(right.ids, other);
        yield { fingerprintA: left.fingerprint, idA, fingerprintB: right.fingerprint, idB, distance };
      }
    }
  }
}

function groups(answer: FindPairsResponse): Group[] {
  const { fingerprints, idCounts, ids } = answer;
  checkLengths({ idCounts }, fingerprints.length);
  checkLengths({ ids }, sum(idCounts));
  let end = 0;
  return fingerprints.map((fingerprint, group) => {
    const start = end;
    end += at(idCounts, group);
    return { fingerprint, ids: ids.slice(start, end) };
  });
}

// Cuts what a source yields into batches that fit a message.

import { checkedFingerprint, checkedString } from "./checks.js";
import type { DocumentColumns } from "./columns.js";

/** The most documents or queries that a message takes. */
const MAX_BATCH = 65_536;

/** The largest message, in bytes. */
export const MAX_MESSAGE_BYTES = 16 << 20;

/** Room for the parts of a message that are no documents. */
const HEADER_BYTES = 64 << 10;

/** Bytes of a fingerprint, and of the tag and length before a string. */
const FINGERPRINT_BYTES = 8;
const STRING_BYTES = 6;

/** What a stream takes: any iterable, which is read no faster than the server answers. */
export type Source<T> = Iterable<T> | AsyncIterable<T>;

/** A document. One without an id has the empty one. */
export type Document = { fingerprint: bigint; id?: string } | { text: string; id?: string };

/** Some of the documents or queries of a source. */
export interface Batch extends DocumentColumns {
  /** The position of the first one in the source. */
  start: number;
  count: number;
}

/** One document or query, checked. */
interface Item {
  fingerprint?: bigint;
  text?: string;
  id: string;
}

/** How many documents a batch has, if nothing else is asked for. */
export const BATCH_SIZE = 4096;

/** Reads a source batch by batch. */
export class Batches<T> {
  readonly #items: Iterator<T> | AsyncIterator<T>;
  readonly #isSync: boolean;
  readonly #check: (value: T, position: number) => Item;
  readonly #most: number;
  /** The first item of the next batch: it did not fit the one before. */
  #next: Item | undefined;
  #position = 0;

  constructor(source: Source<T>, check: (value: T, position: number) => Item, most = BATCH_SIZE) {
    if (!Number.isInteger(most) || most < 1 || most > MAX_BATCH) {
      throw new RangeError(`batchSize is ${most}, not a whole number from 1 to ${MAX_BATCH}`);
    }
    if (typeof source !== "object" || source === null) throw new TypeError("the source is no iterable");
    this.#isSync = Symbol.iterator in source;
    if (Symbol.iterator in source) this.#items = source[Symbol.iterator]();
    else if (Symbol.asyncIterator in source) this.#items = source[Symbol.asyncIterator]();
    else throw new TypeError("the source is no iterable");
    this.#check = check;
    this.#most = most;
  }

  /** The next batch, or undefined after the last one. */
  async read(): Promise<Batch | undefined> {
    const batch = new Growing(this.#position - (this.#next ? 1 : 0));
    if (this.#next) batch.add(this.#next);
    this.#next = undefined;
    while (batch.count < this.#most) {
      const step = this.#items.next();
      // Waiting for each item of an array would take longer than all the rest.
      const { done, value } = this.#isSync ? (step as IteratorResult<T>) : await step;
      if (done) break;
      const item = this.#check(value, this.#position++);
      if (!batch.fits(item)) {
        this.#next = item;
        break;
      }
      batch.add(item);
    }
    return batch.count > 0 ? batch : undefined;
  }

  /** Tells the source that no more is read. */
  async close(): Promise<void> {
    await this.#items.return?.();
  }
}

/** A batch that is being filled. */
class Growing implements Batch {
  readonly start: number;
  readonly fingerprints: bigint[] = [];
  readonly texts: string[] = [];
  #ids: string[] | undefined;
  #bytes = HEADER_BYTES;

  constructor(start: number) {
    this.start = start;
  }

  get count(): number {
    return this.fingerprints.length + this.texts.length;
  }

  /** One id each, or none at all. */
  get ids(): string[] {
    return this.#ids ?? [];
  }

  /** Whether one more fits. A batch has only fingerprints or only texts; the first one always fits. */
  fits(item: Item): boolean {
    const other = item.text === undefined ? this.texts : this.fingerprints;
    return this.count === 0 || (other.length === 0 && this.#bytes + bytesOf(item) <= MAX_MESSAGE_BYTES);
  }

  add(item: Item): void {
    this.#bytes += bytesOf(item);
    if (item.id !== "") this.#ids ??= new Array<string>(this.count).fill("");
    this.#ids?.push(item.id);
    if (item.text === undefined) this.fingerprints.push(item.fingerprint ?? 0n);
    else this.texts.push(item.text);
  }
}

function bytesOf(item: Item): number {
  const text = item.text === undefined ? FINGERPRINT_BYTES : STRING_BYTES + Buffer.byteLength(item.text);
  return text + STRING_BYTES + Buffer.byteLength(item.id);
}

/** A document of a stream. Errors name its position. */
export function documentItem(document: Document, position: number): Item {
  const place = `document ${position}`;
  if (typeof document !== "object" || document === null) {
    throw new TypeError(`${place} is no object with a fingerprint or a text`);
  }
  const { fingerprint, text, id } = document as { fingerprint?: unknown; text?: unknown; id?: unknown };
  if ((fingerprint === undefined) === (text === undefined)) {
    throw new TypeError(`${place} has to have a fingerprint or a text, one of the two`);
  }
  const known = id === undefined ? "" : checkedString(id, `the id of ${place}`);
  if (text !== undefined) return { text: checkedString(text, `the text of ${place}`), id: known };
  return { fingerprint: checkedFingerprint(fingerprint, `the fingerprint of ${place}`), id: known };
}

/** A query of a stream: a string is a text. Errors name its position. */
export function queryItem(query: bigint | string, position: number): Item {
  const place = `query ${position}`;
  if (typeof query === "string") return { text: checkedString(query, place), id: "" };
  return { fingerprint: checkedFingerprint(query, place), id: "" };
}

/** A batch of queries in two halves; undefined if it is a single query. */
export function splitQueries(batch: Batch): [Batch, Batch] | undefined {
  if (batch.count < 2) return undefined;
  const middle = Math.floor(batch.count / 2);
  const part = (from: number, to: number): Batch => ({
    start: batch.start + from,
    count: to - from,
    fingerprints: batch.fingerprints.slice(from, to),
    texts: batch.texts.slice(from, to),
    ids: [],
  });
  return [part(0, middle), part(middle, batch.count)];
}

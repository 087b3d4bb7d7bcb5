// What is refused before it is sent. The encoding of messages would round some of it, or store a zero, without a word.

const MAX_FINGERPRINT = 2n ** 64n - 1n;

/**
 * The same fingerprint, if it is one.
 *
 * @throws TypeError if it is no bigint, RangeError if it has more than 64 bits or is negative; both name the place.
 */
export function checkedFingerprint(value: unknown, place: string): bigint {
  if (typeof value !== "bigint") {
    throw new TypeError(`${place} is ${described(value)}: a fingerprint is a bigint, such as 5n`);
  }
  if (value < 0n || value > MAX_FINGERPRINT) {
    throw new RangeError(`${place} is ${value}n: a fingerprint is from 0n to 2n ** 64n - 1n`);
  }
  return value;
}

/**
 * The same string, if it can be sent as UTF-8.
 *
 * @throws TypeError that names the place. UTF-8 has no lone surrogates: two such strings would be sent as the same one.
 */
export function checkedString(value: unknown, place: string): string {
  if (typeof value !== "string") throw new TypeError(`${place} is ${described(value)}, not a string`);
  if (!value.isWellFormed()) {
    throw new TypeError(`${place} has half of a surrogate pair: toWellFormed() replaces such halves`);
  }
  return value;
}

/**
 * The same number, if a message can hold it.
 *
 * @throws TypeError if it is no number, RangeError if it is no whole number from 0 to 2^32 - 1.
 */
export function checkedCount(value: unknown, name: string): number {
  if (typeof value !== "number") throw new TypeError(`${name} is ${described(value)}, not a number`);
  if (!Number.isInteger(value) || value < 0 || value >= 2 ** 32) {
    throw new RangeError(`${name} is ${value}, not a whole number from 0 to 2^32 - 1`);
  }
  return value;
}

/**
 * The same time in milliseconds, if a timer can wait for it.
 *
 * @throws TypeError if it is no number, RangeError if it is negative or over 24 days.
 */
export function checkedTime(value: unknown, name: string): number {
  if (typeof value !== "number") throw new TypeError(`${name} is ${described(value)}, not a number`);
  if (!(value >= 0 && value < 2 ** 31)) {
    throw new RangeError(`${name} is ${value}, not a time from 0 to 2^31 - 1 milliseconds`);
  }
  return value;
}

function described(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "number" || typeof value === "boolean") return `the ${typeof value} ${value}`;
  return Array.isArray(value) ? "an array" : `of type ${typeof value}`;
}

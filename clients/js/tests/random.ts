// Random numbers that a seed repeats.

/** The seed of this run: SIMSHARD_SEED repeats one. */
export const SEED = Number(process.env["SIMSHARD_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** A generator of random numbers (splitmix64). */
export class Random {
  #state: bigint;

  constructor(stream: number) {
    this.#state = (BigInt(SEED) << 32n) + BigInt(stream);
  }

  /** 64 random bits. */
  bits(): bigint {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e3779b97f4a7c15n);
    let mixed = this.#state;
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return mixed ^ (mixed >> 31n);
  }

  /** A number from 0 and below `end`. */
  below(end: number): number {
    return Number(this.bits() % BigInt(end));
  }

  /** The same fingerprint with some bits flipped. */
  near(fingerprint: bigint, flips: number): bigint {
    for (let flip = 0; flip < flips; flip++) fingerprint ^= 1n << BigInt(this.below(64));
    return fingerprint;
  }
}

/** Number of bits in which two fingerprints differ. */
export function distance(a: bigint, b: bigint): number {
  let differing = 0;
  for (let bits = a ^ b; bits > 0n; bits &= bits - 1n) differing++;
  return differing;
}

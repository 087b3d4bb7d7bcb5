// What a distance says about texts.

import { checkedCount, checkedString } from "./checks.js";

/**
 * The Jaccard similarity of two texts that the distance of their fingerprints suggests: 1 - d / 32, and at least 0.
 * Undefined if the recipe of their corpus suggests none.
 *
 * With `words-v2-N` it is the similarity of their runs of N words. With `words-v3` it is a quarter of that of their
 * words, and three quarters of that of their runs of 2 words. `Corpus.describe` tells the recipe of a corpus.
 *
 * @throws TypeError or RangeError if the distance is no whole number.
 */
export function similarity(distance: number, recipe: string): number | undefined {
  const bits = checkedCount(distance, "the distance");
  return isOfMinima(checkedString(recipe, "the recipe")) ? Math.max(0, 1 - bits / 32) : undefined;
}

/** The recipes whose bits are those of minima. The one with runs of 2 words has no number. */
function isOfMinima(recipe: string): boolean {
  if (recipe === "words-v3" || recipe === "words-v2") return true;
  const length = /^words-v2-([1-9]\d*)$/.exec(recipe)?.[1];
  return length !== undefined && length !== "2" && Number(length) <= 255;
}

// Pauses grow, have jitter, and end with the patience.

import assert from "node:assert/strict";
import { test } from "node:test";

import { FIRST_PAUSE, Patience, pauseBefore } from "#dist/patience.js";

const LIMIT = 30_000;

test("pauses grow and end with the patience", () => {
  const patience = new Patience(LIMIT);
  const pauses: number[] = [];
  let now = 0;
  for (let pause = patience.afterFailure(0, now); pause !== undefined; pause = patience.afterFailure(0, now)) {
    pauses.push(pause);
    now += pause;
  }
  assert.equal(now, LIMIT, "the last try is when the patience ends");
  assert.ok((pauses[0] ?? 0) >= FIRST_PAUSE && (pauses[0] ?? 0) <= 2 * FIRST_PAUSE);
  assert.ok((pauses[4] ?? 0) >= 16 * FIRST_PAUSE, String(pauses));
  assert.ok(pauses.every((pause) => pause <= 10_000));
});

test("a pause has jitter, and is no shorter than what the server asks for", () => {
  assert.equal(pauseBefore(0, 0, () => 0), FIRST_PAUSE);
  assert.equal(pauseBefore(1, 0, () => 0.5), 3 * FIRST_PAUSE);
  assert.equal(pauseBefore(0, 1000, () => 0), 1000);
  const others = new Set(Array.from({ length: 8 }, () => pauseBefore(0)));
  assert.ok(others.size > 1, "no jitter");
});

test("progress begins the patience anew", () => {
  const patience = new Patience(LIMIT);
  assert.notEqual(patience.afterFailure(0, 0), undefined);
  assert.equal(patience.afterFailure(0, LIMIT), undefined);
  patience.afterProgress();
  assert.ok((patience.afterFailure(LIMIT, LIMIT) ?? Infinity) <= 2 * FIRST_PAUSE);
});

test("a word is said once until something succeeds", () => {
  const patience = new Patience(LIMIT);
  assert.equal(patience.overdue(1000), undefined, "nothing failed");
  for (let round = 0; round < 2; round++) {
    patience.afterFailure(0, 0);
    assert.equal(patience.overdue(0), undefined, "it may be over at once");
    assert.equal(patience.overdue(1000), LIMIT - 1000);
    assert.equal(patience.overdue(1000), undefined, "it was said");
    patience.afterProgress();
  }
});

test("without patience the first failure is the last", () => {
  assert.equal(new Patience(0).afterFailure(0, 0), undefined);
});

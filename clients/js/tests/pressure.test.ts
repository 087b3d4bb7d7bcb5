// Memory stays bounded while the consumer, the source or the server is slow.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Client, type Document } from "@simshard/client";

import { Server } from "./server.js";

const ID_BYTES = 1000;
const COUNT = 60_000;
const MIB = 1 << 20;

let server: Server;
let client: Client;
before(async () => {
  server = await Server.start();
  client = new Client(server.url);
});
after(async () => {
  client.close();
  await server.end();
});

/** Documents with large ids, and a count of those that were taken. */
function* large(taken: { count: number }, most = Infinity): Generator<Document> {
  while (taken.count < most) {
    const number = taken.count++;
    yield { fingerprint: BigInt(number % 500) << 40n, id: `${number}-`.padEnd(ID_BYTES, "x") };
  }
}

/** Memory in use. What is garbage is collected first: twice, as buffers are freed after the first time. */
async function used(): Promise<number> {
  for (let round = 0; round < 2; round++) {
    globalThis.gc?.();
    await wait(50);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Waits until a number no longer grows: what is in flight has come to rest. */
async function settled(current: () => number): Promise<number> {
  let before = -1;
  for (let same = 0; same < 5; ) {
    await wait(100);
    const now = current();
    same = now === before ? same + 1 : 0;
    before = now;
  }
  return before;
}

test("a source is read no further than the window while the server does nothing", async () => {
  const taken = { count: 0 };
  const corpus = client.corpus("default");
  server.freeze();
  const before = await used();
  const stream = corpus.insertStream(large(taken), { batchSize: 1000 });
  const first = stream.next();
  first.catch(() => {});
  try {
    await settled(() => taken.count);
    // 8 batches in the window.
    assert.ok(taken.count <= 8 * 1000 + 1, `${taken.count} documents were read`);
    const grown = (await used()) - before;
    assert.ok(grown < 40 * MIB, `${grown} bytes for ${taken.count * ID_BYTES}`);
  } finally {
    server.thaw();
  }
  assert.equal((await first).value?.documents, 1000);
  await stream.return();
});

test("a source is read no further than the window while the consumer does nothing", async () => {
  const taken = { count: 0 };
  const stream = client.corpus("default").insertStream(large(taken), { batchSize: 1000 });
  await stream.next();
  const read = await settled(() => taken.count);
  // One batch was answered, and one may have been read for the room that it left.
  assert.ok(read <= 10 * 1000, `${read} documents were read`);
  await stream.return();
});

test("a whole corpus is read no faster than its consumer takes it, and others go on", async () => {
  await client.createCorpus("large");
  const corpus = client.corpus("large");
  for await (const _ of corpus.insertStream(large({ count: 0 }, COUNT)));
  const before = await used();
  const stream = corpus.scan();
  assert.ok(!(await stream.next()).done);
  let most = 0;
  for (let look = 0; look < 5; look++) most = Math.max(most, (await used()) - before);
  // All of it has 60 MB; a message has a few, and one more is read ahead.
  assert.ok(most < 24 * MIB, `${most} bytes`);
  // The stream that waits holds up no other on the same connection.
  const found = await corpus.find({ fingerprints: [0n] }, { maxDistance: 0, maxIds: 1, timeoutMs: 5000 });
  assert.equal(found.matches.length, 1);
  let rest = 1;
  for await (const _ of stream) rest++;
  assert.equal(rest, COUNT);
});

test("matches are read no faster than their consumer takes them", async () => {
  const corpus = client.corpus("large");
  let taken = 0;
  function* queries(): Generator<bigint> {
    for (;;) yield BigInt(taken++ % 500) << 40n;
  }
  const before = await used();
  const stream = corpus.findStream(queries(), { maxDistance: 0, batchSize: 10 });
  await stream.next();
  await settled(() => taken);
  // 120 ids a match: an answer has 1.2 MB.
  assert.ok(taken <= 7 * 10, `${taken} queries were read`);
  const grown = (await used()) - before;
  assert.ok(grown < 40 * MIB, `${grown} bytes`);
  await stream.return();
});

test("a stream that is left early can be followed by others at once", async () => {
  const corpus = client.corpus("large");
  // A server serves 16 such streams at a time.
  for (let round = 0; round < 40; round++) {
    for await (const _ of corpus.scan()) break;
  }
  await assert.doesNotReject(corpus.find({ fingerprints: [1n] }, { maxIds: 1 }));
});

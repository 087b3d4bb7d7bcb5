// Wrong values are refused before anything is sent. Encoders of JavaScript store some as zero, and round others.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, SimshardError, type Corpus } from "@simshard/client";

import { Server } from "./server.js";

let server: Server;
let client: Client;
let corpus: Corpus;
before(async () => {
  server = await Server.start();
  client = new Client(server.url);
  await client.createCorpus("refusals");
  corpus = client.corpus("refusals");
});
after(async () => {
  client.close();
  await server.end();
});

test("an option that there is not is refused by its name", async () => {
  const misspelt: any = { maxDistanse: 1 };
  const refusal = { name: "TypeError", message: /no option maxDistanse here, but / };
  assert.throws(() => new Client(server.url, misspelt), refusal);
  const queries = { fingerprints: [5n] };
  for (const asked of [
    () => client.createCorpus("misspelt", misspelt),
    () => client.listCorpora(misspelt),
    () => client.deleteCorpus("misspelt", misspelt),
    () => corpus.describe(misspelt),
    () => corpus.fingerprint(["a"], misspelt),
    () => corpus.insert(queries, misspelt),
    () => corpus.remove(queries, misspelt),
    () => corpus.find(queries, misspelt),
    () => corpus.findFirst(queries, misspelt),
    async () => drained(corpus.insertStream([{ fingerprint: 5n }], misspelt)),
    async () => drained(corpus.removeStream([{ fingerprint: 5n }], misspelt)),
    async () => drained(corpus.findStream([5n], misspelt)),
    async () => drained(corpus.findFirstStream([5n], misspelt)),
    () => drained(corpus.scan(misspelt)),
    () => drained(corpus.findPairs(misspelt)),
    () => drained(corpus.findClusters(misspelt)),
  ]) {
    await assert.rejects(asked, refusal, String(asked));
  }
  // One of another method.
  await assert.rejects(corpus.insert(queries, { limit: 1 } as any), /no option limit/);
  await drained(corpus.scan());
});

test("a client that was closed says so", async () => {
  const closed = new Client(server.url);
  closed.close();
  const refusal = { name: "Error", message: /was closed: make a new one/ };
  const documents = closed.corpus("refusals");
  await assert.rejects(closed.listCorpora(), refusal);
  await assert.rejects(documents.find({ fingerprints: [5n] }), refusal);
  await assert.rejects(drained(documents.insertStream([{ fingerprint: 5n }])), refusal);
  await assert.rejects(drained(documents.scan()), refusal);
});

/** No fingerprints, and the error for each. */
const WRONG: [unknown, { name: string; message: RegExp }][] = [
  [5, { name: "TypeError", message: /the number 5: a fingerprint is a bigint/ }],
  [-5, { name: "TypeError", message: /the number -5/ }],
  [1.5, { name: "TypeError", message: /the number 1.5/ }],
  [2 ** 53 + 2, { name: "TypeError", message: /the number 9007199254740994/ }],
  [NaN, { name: "TypeError", message: /the number NaN/ }],
  ["abc", { name: "TypeError", message: /of type string/ }],
  ["5", { name: "TypeError", message: /of type string/ }],
  [null, { name: "TypeError", message: /null/ }],
  [undefined, { name: "TypeError", message: /undefined/ }],
  [true, { name: "TypeError", message: /the boolean true/ }],
  [[5n], { name: "TypeError", message: /an array/ }],
  [{ low: 5, high: 0 }, { name: "TypeError", message: /of type object/ }],
  [Object(5n), { name: "TypeError", message: /of type object/ }],
  [-1n, { name: "RangeError", message: /is -1n: a fingerprint is from 0n/ }],
  [-(2n ** 64n), { name: "RangeError", message: /-18446744073709551616n/ }],
  [2n ** 64n, { name: "RangeError", message: /18446744073709551616n/ }],
  [2n ** 200n, { name: "RangeError", message: /is \d{61}n/ }],
];

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

for (const [value, { name, message }] of WRONG) {
  const shown = typeof value === "object" ? JSON.stringify(value, (_, part) => String(part)) : String(value);
  test(`the ${typeof value} ${shown} is no fingerprint, anywhere`, async () => {
    const wrong = value as bigint;
    const columns = { fingerprints: [1n, 2n, wrong, 4n] };
    for (const request of [
      () => corpus.insert(columns),
      () => corpus.remove(columns),
      () => corpus.find(columns),
      () => corpus.findFirst(columns),
    ]) {
      await assert.rejects(request, (error: Error) => {
        assert.equal(error.name, name);
        assert.match(error.message, message);
        assert.match(error.message, /^fingerprints\[2\] is /);
        return true;
      });
    }
    const documents = columns.fingerprints.map((fingerprint) => ({ fingerprint }));
    for (const stream of [corpus.insertStream(documents), corpus.removeStream(documents)]) {
      await assert.rejects(drained(stream), { name: /Error/, message: /document 2\b/ });
    }
    if (typeof value !== "string") {
      for (const stream of [corpus.findStream(columns.fingerprints), corpus.findFirstStream(columns.fingerprints)]) {
        await assert.rejects(drained(stream), { name, message: /^query 2 is / });
      }
    }
    assert.equal((await corpus.describe()).documentCount, 0, "nothing was stored");
  });
}

test("every fingerprint of 64 bits comes back as it was", async () => {
  await client.createCorpus("edges");
  const edges = client.corpus("edges");
  const powers = Array.from({ length: 64 }, (_, bit) => 1n << BigInt(bit));
  const values = [...new Set([0n, 2n ** 53n + 1n, 2n ** 64n - 1n, ...powers, ...powers.map((power) => power - 1n)])];
  const ids = values.map(String);
  assert.equal(await edges.insert({ fingerprints: values, ids }), values.length);
  const found = await edges.find({ fingerprints: values }, { maxDistance: 0 });
  assert.deepEqual(found.fingerprints, values);
  assert.deepEqual(found.matches.map(({ fingerprint, ids: [id] }) => [fingerprint, id]), values.map((value) => [value, String(value)]));
  const scanned = [];
  for await (const document of edges.scan()) scanned.push(document);
  assert.deepEqual(scanned, [...values].sort((a, b) => (a < b ? -1 : 1)).map((fingerprint) => ({ fingerprint, id: String(fingerprint) })));
});

test("typed arrays are taken if all they hold is in range", async () => {
  await assert.rejects(corpus.find({ fingerprints: new BigInt64Array([1n, -1n]) }), /fingerprints\[1\] is -1n/);
  const numbers = new Float64Array([1, 2]) as unknown as BigUint64Array;
  await assert.rejects(corpus.find({ fingerprints: numbers }), /fingerprints\[0\] is the number 1/);
  assert.equal((await corpus.find({ fingerprints: new BigUint64Array([1n, 2n ** 64n - 1n]) })).fingerprints[1], 2n ** 64n - 1n);
});

test("ids and texts that UTF-8 cannot hold are refused, not stored as another one", async () => {
  for (const half of ["\ud800", "a\udc00b"]) {
    await assert.rejects(corpus.insert({ fingerprints: [1n], ids: [half] }), { name: "TypeError", message: /^ids\[0\]/ });
    await assert.rejects(corpus.find({ texts: ["fine", half] }), { name: "TypeError", message: /^texts\[1\]/ });
    const documents = [{ fingerprint: 1n, id: "fine" }, { fingerprint: 1n, id: half }];
    await assert.rejects(drained(corpus.insertStream(documents)), { name: "TypeError", message: /the id of document 1/ });
  }
  assert.equal((await corpus.describe()).documentCount, 0);
});

test("other wrong arguments are refused by name", async () => {
  const wrong = (value: unknown) => value as never;
  const fingerprints = [1n];
  const refused: [() => unknown, string, RegExp][] = [
    [() => corpus.insert({ fingerprints, ids: [] }), "RangeError", /0 ids for 1 documents/],
    [() => corpus.insert({ fingerprints, ids: wrong([7]) }), "TypeError", /ids\[0\] is the number 7/],
    [() => corpus.insert(wrong({})), "TypeError", /one of fingerprints and texts/],
    [() => corpus.insert(wrong({ fingerprints, texts: ["a"] })), "TypeError", /one of fingerprints and texts/],
    [() => corpus.insert({ texts: wrong("a text") }), "TypeError", /texts is no array/],
    [() => corpus.find({ fingerprints }, { maxDistance: 1.5 }), "RangeError", /maxDistance is 1.5/],
    [() => corpus.find({ fingerprints }, { maxDistance: -1 }), "RangeError", /maxDistance is -1/],
    [() => corpus.find({ fingerprints }, { limit: 0 }), "RangeError", /limit is 0/],
    [() => corpus.find({ fingerprints }, { maxIds: wrong("3") }), "TypeError", /maxIds is of type string/],
    [() => corpus.find({ fingerprints }, { timeoutMs: NaN }), "RangeError", /timeoutMs is NaN/],
    [() => drained(corpus.findStream(wrong("a text"))), "TypeError", /no iterable/],
    [() => drained(corpus.findStream([1n], { batchSize: 0 })), "RangeError", /batchSize is 0/],
    [() => drained(corpus.insertStream([wrong({ id: "a" })])), "TypeError", /document 0 has to have/],
    [() => drained(corpus.insertStream([wrong(5n)])), "TypeError", /document 0 is no object/],
  ];
  for (const [request, name, message] of refused) await assert.rejects(async () => request(), { name, message });
  for (const router of ["", "127.0.0.1", "ftp://127.0.0.1:7460", "https://127.0.0.1:7460/corpora", "http://127.0.0.1:7460/corpora", "a:b"]) {
    assert.throws(() => new Client(router), { name: "TypeError", message: /is no router such as/ }, router);
  }
});

test("an error of a stream has the position in its input, not in a batch of it", async () => {
  async function refused(stream: AsyncIterable<unknown>, field: string): Promise<void> {
    await assert.rejects(drained(stream), (error) => {
      assert.ok(error instanceof SimshardError);
      assert.deepEqual(error.fields, [field]);
      assert.ok(error.message.includes(field), error.message);
      assert.equal(error.reason, "INVALID_REQUEST");
      return true;
    });
  }
  const many = new Array<string>(9000).fill("two words");
  await refused(corpus.findStream([...many, "!"]), "texts[9000]");
  await refused(corpus.findFirstStream([1n, 2n, "two words", "!"]), "texts[3]");
  await refused(corpus.findStream([...many.slice(0, 4), "!"], { batchSize: 2 }), "texts[4]");
  const documents = many.map((text) => ({ text }));
  await refused(corpus.removeStream([...documents, { text: "!" }]), "texts[9000]");
});

// Searches and streams give what a comparison of all with all gives.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, similarity, type Match } from "@simshard/client";

import { distance, Random, SEED } from "./random.js";
import { Server } from "./server.js";

interface Stored {
  fingerprint: bigint;
  id: string;
}

let server: Server;
let client: Client;
before(async () => {
  console.log(`SIMSHARD_SEED=${SEED}`);
  server = await Server.start();
  client = new Client(server.url);
});
after(async () => {
  client.close();
  await server.end();
});

/** Documents around some centres; some share a fingerprint, and some have no id. */
function documents(random: Random, count: number): Stored[] {
  const centres = Array.from({ length: 20 }, () => random.bits());
  centres.push(0n, 2n ** 64n - 1n, 2n ** 63n, 2n ** 53n + 1n);
  return Array.from({ length: count }, (_, number) => {
    const centre = centres[random.below(centres.length)] as bigint;
    const fingerprint = random.near(centre, random.below(4));
    return { fingerprint, id: random.below(10) === 0 ? "" : `d${number}` };
  });
}

/** Different documents by fingerprint: as a corpus has them. */
function byFingerprint(stored: Stored[]): Map<bigint, string[]> {
  const groups = new Map<bigint, Set<string>>();
  for (const { fingerprint, id } of stored) {
    groups.set(fingerprint, (groups.get(fingerprint) ?? new Set()).add(id));
  }
  return new Map([...groups].map(([fingerprint, ids]) => [fingerprint, [...ids].sort()]));
}

/** All matches of all queries, the slow way. */
function expected(stored: Stored[], queries: bigint[], most: number): Match[] {
  const groups = [...byFingerprint(stored)];
  return queries.flatMap((query, position) => {
    const near = groups.filter(([fingerprint]) => distance(fingerprint, query) <= most);
    const rows = near.map(([fingerprint, ids]) => ({
      query: position,
      fingerprint,
      distance: distance(fingerprint, query),
      ids,
      documentCount: ids.length,
    }));
    return rows.sort((a, b) => a.distance - b.distance || (a.fingerprint < b.fingerprint ? -1 : 1));
  });
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const rows = [];
  for await (const row of stream) rows.push(row);
  return rows;
}

for (const round of [1, 2, 3]) {
  test(`round ${round}: requests and streams find what brute force finds`, async () => {
    const random = new Random(round);
    const stored = documents(random, 400);
    const name = `round-${round}`;
    await client.createCorpus(name, { blocks: 6, distance: 3 });
    const corpus = client.corpus(name);
    const different = [...byFingerprint(stored).values()].flat().length;

    const acknowledged = await all(corpus.insertStream(stored, { batchSize: 1 + random.below(90) }));
    assert.equal(acknowledged.reduce((sum, batch) => sum + batch.documents, 0), stored.length);
    assert.equal(acknowledged.reduce((sum, batch) => sum + batch.changed, 0), different);

    const queries = stored.slice(0, 100).map(({ fingerprint }) => random.near(fingerprint, random.below(5)));
    for (const maxDistance of [0, 2, 3]) {
      const right = expected(stored, queries, maxDistance);
      const nearest = right.filter((row, place) => row.query !== right[place - 1]?.query);
      const batchSize = 1 + random.below(40);
      assert.deepEqual((await corpus.find({ fingerprints: queries }, { maxDistance })).matches, right);
      assert.deepEqual(await all(corpus.findStream(queries, { maxDistance, batchSize })), right);
      const first = await corpus.findFirst({ fingerprints: new BigUint64Array(queries) }, { maxDistance });
      assert.deepEqual([...first], nearest);
      assert.deepEqual(await all(corpus.findFirstStream(queries, { maxDistance, batchSize })), nearest);
    }
    await wholesAreRight(name, stored);

    const some = stored.slice(0, 150);
    const rest = stored.filter(({ fingerprint, id }) => !some.some((one) => one.fingerprint === fingerprint && one.id === id));
    const removed = await all(corpus.removeStream(some, { batchSize: 40 }));
    assert.equal(removed.reduce((sum, batch) => sum + batch.documents, 0), 150);
    assert.deepEqual((await corpus.find({ fingerprints: queries })).matches, expected(rest, queries, 3));
  });
}

/** Scan, pairs and clusters of a corpus. */
async function wholesAreRight(name: string, stored: Stored[]): Promise<void> {
  const corpus = client.corpus(name);
  const rows = [...byFingerprint(stored)].flatMap(([fingerprint, ids]) => ids.map((id) => ({ fingerprint, id })));
  rows.sort((a, b) => (a.fingerprint === b.fingerprint ? (a.id < b.id ? -1 : 1) : a.fingerprint < b.fingerprint ? -1 : 1));
  assert.deepEqual(await all(corpus.scan()), rows);
  const description = await corpus.describe();
  assert.equal(description.documentCount, rows.length);
  assert.equal(description.state, "LIVE");

  const key = (a: Stored, b: Stored): string => [a, b].map(({ fingerprint, id }) => `${fingerprint} ${id}`).sort().join(" ");
  const near = rows.flatMap((a, place) =>
    rows.slice(place + 1).flatMap((b) => (distance(a.fingerprint, b.fingerprint) <= 3 ? [key(a, b)] : [])),
  );
  const pairs = await all(corpus.findPairs({ maxDistance: 3 }));
  const found = pairs.map(({ fingerprintA, idA, fingerprintB, idB, distance: bits }) => {
    assert.equal(distance(fingerprintA, fingerprintB), bits);
    return key({ fingerprint: fingerprintA, id: idA }, { fingerprint: fingerprintB, id: idB });
  });
  assert.deepEqual(found.sort(), near.sort());

  const clusters = await all(corpus.findClusters());
  assert.ok(clusters.length > 0 && clusters.length <= rows.length);
  for (const { fingerprint, cluster } of clusters) assert.ok(cluster <= fingerprint);
}

test("a limit cuts the matches, and the answer says so", async () => {
  await client.createCorpus("limits");
  const corpus = client.corpus("limits");
  assert.equal(await corpus.insert({ fingerprints: [0n, 1n, 3n, 3n], ids: ["a", "b", "c", "d"] }), 4);
  const found = await corpus.find({ fingerprints: [2n ** 40n - 1n, 0n, 3n] }, { limit: 2, maxIds: 1 });
  assert.deepEqual(found.truncated, [1, 2]);
  assert.deepEqual(found.fingerprints, [2n ** 40n - 1n, 0n, 3n]);
  assert.deepEqual(found.matches.map(({ query, fingerprint, ids, documentCount }) => [query, fingerprint, ids, documentCount]), [
    [1, 0n, ["a"], 1],
    [1, 1n, ["b"], 1],
    [2, 3n, ["c"], 2],
    [2, 1n, ["b"], 1],
  ]);
  assert.equal(await corpus.remove({ fingerprints: [0n, 0n], ids: ["a", "other"] }), 1);
});

test("texts are fingerprinted by the recipe of the corpus", async () => {
  await client.createCorpus("texts", { recipe: "words-v2" });
  const corpus = client.corpus("texts");
  const texts = ["the quick brown fox jumps over the lazy dog", "a text of its own, about something else"];
  assert.equal(await corpus.insert({ texts, ids: ["fox", "other"] }), 2);
  const [fox] = await corpus.fingerprint(texts);
  const found = await corpus.find({ texts: ["The quick, brown fox jumps over the lazy dog!"] });
  assert.deepEqual(found.matches, [{ query: 0, fingerprint: fox, distance: 0, ids: ["fox"], documentCount: 1 }]);
  // Fingerprints and texts in one source are sent in batches of one kind.
  const mixed = await all(corpus.findStream([fox as bigint, texts[1] as string, texts[0] as string]));
  assert.deepEqual(mixed.map(({ query, ids }) => [query, ids[0]]), [[0, "fox"], [1, "other"], [2, "fox"]]);
});

test("fetch finds what the client stored, and is refused where it names a site", async () => {
  await client.createCorpus("fetched");
  await client.corpus("fetched").insert({ fingerprints: [2n ** 64n - 1n], ids: ["a"] });
  const ask = (headers: Record<string, string>) =>
    fetch(`${server.url}/simshard.v1.CorpusService/FindAll`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ corpus: "fetched", fingerprints: [String(2n ** 64n - 2n)] }),
    });
  const answer = await ask({});
  assert.equal(answer.status, 200);
  const { rows } = (await answer.json()) as { rows: unknown };
  const row = { query: 0, fingerprint: "18446744073709551615", distance: 1, documentCount: "1", ids: ["a"] };
  assert.deepEqual(rows, [row]);
  // As each browser does for a page.
  const refused = await ask({ origin: "https://elsewhere.example" });
  assert.equal(refused.status, 403);
});

test("a distance suggests a similarity where the recipe has minima", async () => {
  for (const recipe of ["words-v3", "words-v2", "words-v2-1", "words-v2-3", "words-v2-255"]) {
    assert.deepEqual([0, 3, 32, 64].map((distance) => similarity(distance, recipe)), [1, 0.90625, 0, 0], recipe);
  }
  // The last ones are no names of recipes.
  const others = ["words-v1", "leonsim-4", "moz-shingle-4", "jenkins-window-5", "textdedup-3", "features"];
  for (const recipe of [...others, "words-v2-2", "words-v2-03", "words-v2-256", "words-v4", " words-v3", ""]) {
    assert.equal(similarity(3, recipe), undefined, recipe);
  }
  assert.throws(() => similarity(-1, "words-v3"), RangeError);
  assert.throws(() => similarity("3" as unknown as number, "words-v3"), TypeError);
});

test("an answer that is too large is asked for in parts, in requests and in streams", async () => {
  await client.createCorpus("large");
  const corpus = client.corpus("large");
  const ids = Array.from({ length: 1500 }, (_, number) => `${number}-`.padEnd(1024, "x")).sort();
  await corpus.insert({ fingerprints: ids.map(() => 7n), ids });
  const queries = new Array<bigint>(30).fill(7n);
  const found = await corpus.find({ fingerprints: queries });
  const rows = await all(corpus.findStream(queries));
  for (const matches of [found.matches, rows]) {
    assert.deepEqual(matches.map(({ query }) => query), [...queries.keys()]);
    assert.ok(matches.every((match) => match.ids.length === 1500));
  }
});

// A router with TLS, or tokens: who is answered, and who is not.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Client, type ClientOptions } from "@simshard/client";

import { Server } from "./server.js";

/** The files that the test is given. */
const FOLDER = process.env["SIMSHARD_CERTIFICATES"] ?? "";

let server: Server;
let known: { ca: Buffer; cert: Buffer; key: Buffer };
before(async () => {
  const file = (name: string): string => join(FOLDER, name);
  const files = ["--tls-cert", file("server.pem"), "--tls-key", file("server.key"), "--tls-client-ca", file("ca.pem")];
  server = await Server.start(files);
  const [ca, cert, key] = await Promise.all([
    readFile(file("ca.pem")),
    readFile(file("client.pem")),
    readFile(file("client.key")),
  ]);
  known = { ca, cert, key };
});
after(async () => {
  await server.end();
});

test("documents are found by TLS as without", async () => {
  const client = new Client(server.url, known);
  const corpus = client.corpus("default");
  await corpus.insert({ fingerprints: [7n], ids: ["seven"] });
  const found = await corpus.find({ fingerprints: [6n] });
  assert.deepEqual(found.matches[0]?.ids, ["seven"]);
  client.close();
});

test("a client that is not known, trusts others, or has no TLS gets no answer", async () => {
  const { ca, cert, key } = known;
  const lacking: [string, ClientOptions][] = [
    [server.url, { ca }],
    [server.url, { cert, key }],
    [server.url.replace("https", "http"), {}],
  ];
  for (const [url, access] of lacking) {
    const client = new Client(url, { ...access, timeoutMs: 2000 });
    await assert.rejects(client.listCorpora(), { name: "SimshardError" });
    client.close();
  }
});

test("a token opens what its role is for", async () => {
  const folder = await mkdtemp(join(tmpdir(), "simshard-js-"));
  const [tokens, secret] = [join(folder, "tokens.toml"), join(folder, "reader.token")];
  const make = ["token", "new", "reader", "--role", "read", "--token-file", secret, "--tokens", tokens];
  execFileSync(process.env["SIMSHARD_PROGRAM"] ?? "", make);
  const token = await readFile(secret, "utf8");
  assert.match(token, /\n$/);
  const guarded = await Server.start(["--tokens", tokens]);
  const reader = new Client(guarded.url, { token });
  assert.equal((await reader.listCorpora()).length, 1);
  const insert = reader.corpus("default").insert({ fingerprints: [7n] });
  await assert.rejects(insert, { reason: "PERMISSION_DENIED" });
  const stranger = new Client(guarded.url);
  await assert.rejects(stranger.listCorpora(), { reason: "UNAUTHENTICATED" });
  reader.close();
  stranger.close();
  await guarded.end();
  await rm(folder, { recursive: true });
});

test("what cannot be of use is refused", () => {
  const { ca, cert, key } = known;
  const wrong: [string, ClientOptions, RegExp][] = [
    ["http://127.0.0.1:7460", { ca }, /ca is of use with TLS only/],
    ["127.0.0.1:7460", { cert, key }, /cert is of use with TLS only/],
    ["https://127.0.0.1:7460", { cert }, /cert and key go together/],
    ["https://127.0.0.1:7460", { ca: "ca.pem" }, /ca is no text in PEM/],
    ["https://127.0.0.1:7460", { cert, key: cert }, /key is no text in PEM/],
    ["ftp://127.0.0.1:7460", {}, /https:/],
    ["http://router:7460", { token: "t" }, /by https:/],
    ["https://router:7460", { token: "t u" }, /no token has/],
  ];
  for (const [url, access, message] of wrong) {
    assert.throws(() => new Client(url, access), { name: "TypeError", message });
  }
});

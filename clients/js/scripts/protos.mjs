// Copies the interface from the repository's folder `proto`, and makes TypeScript of it.
//
// A package that was made has its own copy in `proto`, and what was generated in `dist`: only a
// checkout of the repository runs this.

import { execFileSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
process.chdir(folder);

const interfaces = ["simshard/v1/corpus_service.proto", "simshard/v1/matches.proto"];
for (const old of ["proto", "src/gen", "dist", "build"]) rmSync(old, { recursive: true, force: true });
for (const file of interfaces) cpSync(`../../proto/${file}`, `proto/${file}`);
cpSync("details", "proto", { recursive: true });
execFileSync("npx", ["--no-install", "buf", "generate"], { stdio: "inherit" });

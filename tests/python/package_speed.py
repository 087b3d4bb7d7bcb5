"""Times the Python package `simshard` in this process. Prints a JSON line.

    python tests/python/package_speed.py find_pairs
    python tests/python/package_speed.py find_all_bulk --data FOLDER
    python tests/python/package_speed.py fingerprint --recipe words-v1
    python tests/python/package_speed.py client --data FOLDER --program target/release/simshard
    python tests/python/package_speed.py compat
    python tests/python/package_speed.py import

FOLDER is one that `simshard bench engine --save FOLDER` wrote. Texts are the files of text below --texts: by default
the sources that cargo has unpacked, as for `simshard bench batch`. RAYON_NUM_THREADS sets how many threads work.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

MILLION = 1_000_000
COMPATIBLE = 10_000


def main():
    cases = {
        "find_pairs": find_pairs,
        "find_all_bulk": find_all_bulk,
        "client": client,
        "fingerprint": fingerprint,
        "compat": compat,
        "import": time_import,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=cases)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--recipe", default="words-v1")
    parser.add_argument("--texts", type=pathlib.Path, default=sources())
    parser.add_argument("--max-mib", type=int, default=64)
    arguments = parser.parse_args()
    print(json.dumps({"case": arguments.case, **cases[arguments.case](arguments)}))


def sources():
    """Where cargo unpacks sources, or this folder."""
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    unpacked = home / "registry" / "src"
    return unpacked if unpacked.is_dir() else pathlib.Path(".")


def seconds_of(work):
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def find_pairs(arguments):
    import numpy
    import simshard

    fingerprints = numpy.random.default_rng(1).integers(0, 2**64, MILLION, dtype=numpy.uint64)
    # Threads start when they are first needed.
    simshard.find_pairs(fingerprints[:1000])
    seconds, pairs = seconds_of(lambda: simshard.find_pairs(fingerprints))
    return {"n": MILLION, "seconds": seconds, "found": len(pairs)}


def find_all_bulk(arguments):
    import numpy
    import simshard

    fingerprints, queries = (
        numpy.fromfile(arguments.data / f"{name}.u64le", dtype="<u8") for name in ("fingerprints", "queries")
    )
    corpus = simshard.Corpus()
    corpus.insert_bulk(fingerprints)
    seconds, matches = seconds_of(lambda: corpus.find_all_bulk(queries))
    return {"seconds": seconds, "per_second": len(queries) / seconds, "matches": len(matches.query)}


def client(arguments):
    """Times the clients of Python and of Rust with one server, which keeps what it is sent in memory."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SIMSHARD_")}
    serve = [arguments.program, "serve", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        router = server.stdout.readline().removeprefix("listening on ").strip()
        command = [arguments.program, "bench", "client", "--json", "--router", router, "--data", arguments.data]
        rust = json.loads(subprocess.check_output(command))
        python = time_client(router, arguments.data)
    finally:
        server.kill()
        server.wait()
    assert python["matches"] == rust["matches"], (python, rust)
    kinds = ["bare", "ids", "find"]
    return python | {f"{kind}_times": rust[f"{kind}_seconds"] / python[f"{kind}_seconds"] for kind in kinds}


def time_client(router, data):
    import numpy
    import pyarrow
    import simshard

    fingerprints, queries = (
        numpy.fromfile(data / f"{name}.u64le", dtype="<u8") for name in ("fingerprints", "queries")
    )
    ids = [f"page-{place:08}" for place in range(len(fingerprints))]
    table = pyarrow.table({"query": queries})
    with simshard.Client(router) as connected:
        for name in ("bench-bare", "bench-ids"):
            connected.create_corpus(name)
        bare, with_ids = connected.corpus("bench-bare"), connected.corpus("bench-ids")
        bare_seconds, _ = seconds_of(lambda: bare.insert(fingerprints=fingerprints))
        ids_seconds, _ = seconds_of(lambda: with_ids.insert(fingerprints=fingerprints, ids=ids))
        find_seconds, found = seconds_of(lambda: bare.find_arrow(table, fingerprint="query").read_all())
    return {
        "bare_seconds": bare_seconds,
        "ids_seconds": ids_seconds,
        "find_seconds": find_seconds,
        "matches": len(found),
    }


def texts_of(arguments):
    """Yield the files of text, up to the size that is wanted."""
    left = arguments.max_mib << 20
    for path in sorted(arguments.texts.rglob("*")):
        if path.is_file():
            octets = path.read_bytes()
            try:
                text = octets.decode()
            except UnicodeDecodeError:
                continue
            if "\0" in text:
                continue
            left -= len(octets)
            if left < 0:
                return
            yield text


def fingerprint(arguments):
    import pyarrow
    import simshard

    texts = list(texts_of(arguments))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    column = pyarrow.array(texts)
    simshard.fingerprint(texts[:100], arguments.recipe, missing=0)
    of_list, listed = seconds_of(lambda: simshard.fingerprint(texts, arguments.recipe, missing=0))
    of_column, read = seconds_of(lambda: simshard.fingerprint(column, arguments.recipe, missing=0))
    assert (listed == read).all()
    return {
        "megabytes": megabytes,
        "list_megabytes_per_second": megabytes / of_list,
        "column_megabytes_per_second": megabytes / of_column,
    }


def compat(arguments):
    """Times `Simhash` of real texts, and of the package that it takes the place of."""
    import simhash
    from simshard.compat import simhash as ours

    texts = [text[start : start + 1000] for text in texts_of(arguments) for start in range(0, len(text), 1000)]
    texts = texts[:COMPATIBLE]
    theirs, expected = seconds_of(lambda: [simhash.Simhash(text).value for text in texts])
    seconds, found = seconds_of(lambda: [ours.Simhash(text).value for text in texts])
    assert found == expected
    return {"texts": len(texts), "seconds": seconds, "times": theirs / seconds}


def time_import(arguments):
    """Times the import beyond that of NumPy, in a process of its own."""
    code = "import numpy, time; start = time.perf_counter(); import simshard; print(time.perf_counter() - start)"
    # The first one writes the compiled modules.
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(4)][1:]
    return {"seconds": min(runs)}


main()

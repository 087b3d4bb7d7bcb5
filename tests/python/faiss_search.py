"""Times FAISS on fingerprints that `simshard bench engine --save FOLDER` wrote.

Searches `queries.u64le` in an `IndexBinaryMultiHash(64, 4, 16)` of `fingerprints.u64le`, on one
thread. With 4 hashes of 16 bits each this index is exact up to distance 3: two fingerprints that
differ in 3 bits agree in one of the 4. Prints one JSON line.

    python tests/python/faiss_search.py --data FOLDER --distance 3
"""

import argparse
import json
import pathlib
import time

import faiss
import numpy


def read(path):
    """The fingerprints of a file as rows of 8 bytes."""
    return numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, 8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--distance", type=int, default=3)
    arguments = parser.parse_args()

    faiss.omp_set_num_threads(1)
    fingerprints = read(arguments.data / "fingerprints.u64le")
    queries = read(arguments.data / "queries.u64le")
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.add(fingerprints)

    start = time.perf_counter()
    # FAISS finds what is nearer than the radius, not what is as near.
    limits, _, _ = index.range_search(queries, arguments.distance + 1)
    seconds = time.perf_counter() - start
    figure = {
        "case": "faiss_range_search",
        "version": faiss.__version__,
        "seconds": seconds,
        "per_second": len(queries) / seconds,
        "matches": int(limits[-1]),
    }
    print(json.dumps(figure))


main()

"""Times jobs of the Python package `simshard` on Spark, on two cores of this machine. Prints a JSON line.

    python tests/python/spark_speed.py pairs --n 10000000
    python tests/python/spark_speed.py sql --n 1000000

`pairs` finds all pairs of random fingerprints within distance 3, and holds their number and sum against the package
itself. `sql` times the same beside a join of Spark SQL: of fingerprints that agree in one of four blocks of 16 bits.
Memory is that of Java and of all workers of Python together, the most that was seen.
"""

import argparse
import json
import os
import pathlib
import sys
import threading
import time

import numpy
import simshard
from simshard import spark as on_spark

SEED = 1

JOIN = """
select distinct one.fingerprint as a, other.fingerprint as b
from blocks one join blocks other on one.block = other.block and one.bits = other.bits
where one.fingerprint < other.fingerprint and bit_count(one.fingerprint ^ other.fingerprint) <= 3
"""


def main():
    cases = {"pairs": pairs, "sql": sql}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=cases)
    parser.add_argument("--n", type=int, required=True)
    arguments = parser.parse_args()
    print(json.dumps({"case": arguments.case, "n": arguments.n, **cases[arguments.case](arguments.n)}))


def session():
    from pyspark.sql import SparkSession

    # Workers are to have what this process has.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.log.level", "ERROR")
    # By default there are 200, which are for clusters.
    return builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()


def frame_of(spark, n):
    """Return random fingerprints as a data frame, and as numbers. One of ten differs in one bit from the next."""
    from pyspark.sql import functions as F

    near = f"xxhash64(id + 1, {SEED}) ^ shiftleft(1L, cast(id % 64 as int))"
    fingerprint = F.expr(f"if(id % 10 = 0, {near}, xxhash64(id, {SEED}))")
    df = spark.range(n, numPartitions=8).select(fingerprint.alias("fingerprint")).cache()
    assert df.count() == n
    numbers = df.toArrow().column("fingerprint").to_numpy().view(numpy.uint64)
    return df, numbers


def found_on_spark(df):
    """Return how many pairs there are, and their sum."""
    from pyspark.sql import functions as F

    both = on_spark.find_pairs(df).select(F.count("*"), F.sum(F.col("a").bitwiseXOR(F.col("b")) % 1_000_003))
    count, total = both.first()
    return count, total or 0


def expected(numbers):
    pairs = simshard.find_pairs(numbers)
    # As Spark has it: the remainder has the sign of the number.
    either = (pairs[:, 0] ^ pairs[:, 1]).view(numpy.int64)
    return len(pairs), int(numpy.fmod(either, 1_000_003).sum())


def pairs(n):
    spark = session()
    df, numbers = frame_of(spark, n)
    with Memory() as memory:
        start = time.perf_counter()
        found = found_on_spark(df)
        seconds = time.perf_counter() - start
    assert found == expected(numbers), (found, expected(numbers))
    spark.stop()
    return {"seconds": seconds, "found": found[0], "bytes": memory.most}


def sql(n):
    from pyspark.sql import functions as F

    spark = session()
    df, _ = frame_of(spark, n)
    # Workers start when they are first needed.
    found_on_spark(df.limit(1000))
    start = time.perf_counter()
    found, _ = found_on_spark(df)
    seconds = time.perf_counter() - start
    places = F.explode(F.array(*(F.lit(block) for block in range(4))))
    blocks = df.select("fingerprint", places.alias("block"))
    bits = F.expr("shiftright(fingerprint, 16 * block) & 65535")
    blocks.withColumn("bits", bits).createOrReplaceTempView("blocks")
    start = time.perf_counter()
    joined = spark.sql(JOIN).count()
    join_seconds = time.perf_counter() - start
    assert joined == found, (joined, found)
    spark.stop()
    return {"seconds": seconds, "sql_seconds": join_seconds, "found": found, "times": join_seconds / seconds}


class Memory:
    """The most memory that the processes below this one take together, without this one."""

    def __enter__(self):
        self.most = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _watch(self):
        while not self._is_over.wait(0.5):
            self.most = max(self.most, sum(map(share_of, processes_below(os.getpid()))))


def processes_below(process):
    children = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = status.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(status.parent.name))
    below, left = [], [process]
    while left:
        some = children.get(left.pop(), [])
        below += some
        left += some
    return below


def share_of(process):
    """Return the bytes of a process; what several share counts in parts."""
    try:
        lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


main()

"""How well each recipe finds near-duplicates of real texts, beside MinHashLSH of datasketch.

    python tests/python/quality.py --program target/release/simshard --data target/quality --page docs/quality.md

`quality_sets.py` fetches the texts. `simshard evaluate --json` gives the truth and the figures of the
recipes; those of web pages come from `quality_pages.py`. MinHashLSH (128 permutations, threshold 0.8) sees the same
runs of 5 words, and its candidates are taken as they come, as programs for deduplication take them. Writes the page
and the plot beside it.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import subprocess
import sys

from datasketch import MinHash, MinHashLSH

# The sources stay as they are.
sys.dont_write_bytecode = True

from quality_pages import DESIGNS, Pages
from quality_plot import plot
from quality_sets import write_sets
from quality_words import ALIKE, jaccard, run_set, shares, words_of

PERMUTATIONS = 128

HEAD = """\
# Quality

Written by `cargo xtask quality`, which fetches some packages with pip, npm and cargo, runs
[`simshard evaluate`](cli.md#evaluate-recipes) on each set of texts, and MinHashLSH of datasketch on the same texts.
Two texts are alike if the Jaccard similarity J of their sets of runs of 5 words is 0.8 or more. Texts equal
word for word count once. *Precision* is the share of found pairs that are alike, *recall* the share of alike
pairs that are found, *unlike* the share of found pairs with J below 0.5. Means weigh all sets alike.

The truth about web pages is not what Simshard takes of them. Each site puts the content of a page into an element of
its own, and J is that of the texts in it. Recipes see what `--html main` takes of the whole page.

Five of the eleven sets of the first half come from one project. The second half was added for that reason,
and its sets were fixed before any recipe was measured on them. `words-v3` was
[chosen](design/decisions.md#the-recipe-words-v3) on the first half alone. The set in Thai was added last, and is
in no half. Targets are judged on all sets. SQLAlchemy has a fourth release: of three, the contents of pages gave 148
alike pairs, and each set needs 200.
"""

SHARES = ("precision", "loose", "recall", "unlike")


def texts_of(path):
    """The texts of a set."""
    return [json.loads(line)["text"] for line in open(path, encoding="utf-8")]


def minhash_figures(texts, true_pairs):
    """What MinHashLSH finds: found pairs, and of them those with J of 0.8, 0.7, and below 0.5."""
    distinct = dict.fromkeys(tuple(words_of(text)) for text in texts)
    sets = [run_set(words) for words in distinct if words]
    lsh = MinHashLSH(threshold=ALIKE, num_perm=PERMUTATIONS)
    similarities = []
    for number, one in enumerate(sets):
        minhash = MinHash(num_perm=PERMUTATIONS)
        minhash.update_batch([run.encode() for run in one])
        similarities += [jaccard(one, sets[other]) for other in lsh.query(minhash)]
        lsh.insert(number, minhash)
    return shares(similarities, true_pairs)


def evaluate(program, path):
    """The figures of all recipes. Fails if there are too few pairs."""
    command = [program, "evaluate", "--json", str(path)]
    print("$ " + " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def recipe_figures(evaluation):
    """The figures by recipe and distance."""
    figures = {}
    for one in evaluation["recipes"]:
        loose = 0
        for row in one["distances"]:
            loose += sum(row["similarities_at_this_distance"][4:])
            value = lambda share: row[share]["value"] if row[share] else None
            figures[one["recipe"], row["distance"]] = {
                "precision": value("precision"),
                "loose": loose / row["found"] if row["found"] else None,
                "recall": value("recall"),
                "unlike": value("unlike"),
            }
    return figures


def mean(values):
    """The mean of those that are there."""
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def mean_shares(all_figures):
    """The mean of each share."""
    return {share: mean([figures[share] for figures in all_figures]) for share in SHARES}


def means(all_figures):
    """The means over sets, by recipe and distance."""
    keys = all_figures[0].keys()
    return {key: mean_shares([figures[key] for figures in all_figures]) for key in keys}


def shown(value):
    """A share."""
    return "–" if value is None else f"{value:.3f}"


def table(heads, rows):
    """A table of Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def means_table(average, minhash):
    """Recipes side by side at the two usual distances."""
    heads = ["", "precision", "J ≥ 0.7", "recall", "unlike"]
    heads = ["recipe"] + [f"{head}, k = {k}" for k in (3, 6) for head in heads[1:]]
    rows = []
    for recipe in dict.fromkeys(recipe for recipe, _ in average):
        row = [f"`{recipe}`"]
        for distance in (3, 6):
            row += [shown(average[recipe, distance][share]) for share in SHARES]
        rows.append(row)
    lsh = [shown(share) for share in mean_shares(minhash).values()]
    rows.append([f"MinHashLSH, {PERMUTATIONS} permutations, {ALIKE}", *lsh, "", "", "", ""])
    return table(heads, rows)


def sets_row(name, texts, true_pairs, figures, minhash):
    """A row of `sets_table`."""
    new, far = figures["words-v3", 3], figures["words-v3", 6]
    before, old = figures["words-v2", 3], figures["words-v1", 3]
    row = [name, texts, true_pairs]
    row += [shown(new[share]) for share in ("recall", "precision", "loose", "unlike")]
    row += [shown(far["recall"])]
    row += [shown(before[share]) for share in ("recall", "loose", "unlike")] + [shown(old["recall"])]
    return row + [shown(minhash[share]) for share in ("recall", "precision")]


def mean_row(name, sets):
    """The means of some sets."""
    minhash = mean_shares([one["minhash"] for one in sets])
    row = sets_row(name, "", "", means([one["figures"] for one in sets]), minhash)
    return [f"**{cell}**" if cell else "" for cell in row]


def sets_table(sets):
    """What was measured of each set, and the means of both halves."""
    heads = ["set", "texts", "alike pairs"]
    heads += ["`words-v3`, k = 3: recall", "precision", "J ≥ 0.7", "unlike", "k = 6: recall"]
    heads += ["`words-v2`, k = 3: recall", "J ≥ 0.7", "unlike"]
    heads += ["`words-v1`, k = 3: recall", "MinHashLSH: recall", "precision"]
    rows = []
    for half in dict.fromkeys(one["half"] for one in sets):
        of_half = [one for one in sets if one["half"] == half]
        for one in of_half:
            counts = (str(one["texts"]), str(one["true_pairs"]))
            rows.append(sets_row(one["name"], *counts, one["figures"], one["minhash"]))
        if half:
            rows.append(mean_row(f"mean of the {half} half", of_half))
    rows.append(mean_row("mean of all sets", sets))
    return table(heads, rows)


def designs_table(sets):
    """Recall of web pages at distance 3 by their design."""
    rows = [
        [design] + [shown(one["designs"][design]["words-v3", 3]["recall"]) for one in sets] for design in DESIGNS
    ]
    return table(["`words-v3`, recall at k = 3"] + [one["name"] for one in sets], rows)


def lengths_table(evaluations):
    """Recall at distance 3 by length, of all sets together."""
    recipes = [one["recipe"] for one in evaluations[0]["recipes"]]
    lengths = [one["words"] for one in evaluations[0]["recipes"][0]["distances"][3]["by_length"]]
    rows = []
    for place, recipe in enumerate(recipes):
        row = [f"`{recipe}`"]
        for length in range(len(lengths)):
            parts = [one["recipes"][place]["distances"][3]["by_length"][length] for one in evaluations]
            true_pairs = sum(part["true_pairs"] for part in parts)
            row.append(shown(sum(part["found_true"] for part in parts) / true_pairs if true_pairs else None))
        rows.append(row)
    return table(["recipe"] + [f"{length} words" for length in lengths], rows)


def targets_table(average, sets):
    """What the project asks of the default, whether it is met, and the figures of the default before."""
    pages = means([one["figures"] for one in sets if one["designs"]])
    rows = []
    for what, bound, figures, distance, share, is_most in [
        ("recall at k = 3", 0.82, average, 3, "recall", False),
        ("precision for J ≥ 0.7 at k = 3", 0.92, average, 3, "loose", False),
        ("unlike at k = 3", 0.005, average, 3, "unlike", True),
        ("recall at k = 6", 0.96, average, 6, "recall", False),
        ("recall of web pages at k = 3, by their contents", 0.82, pages, 3, "recall", False),
        ("precision of web pages for J ≥ 0.7 at k = 3", 0.92, pages, 3, "loose", False),
    ]:
        value, before = (figures[recipe, distance][share] for recipe in ("words-v3", "words-v2"))
        is_met = value <= bound if is_most else value >= bound
        sign = "≤" if is_most else "≥"
        met = "met" if is_met else "**missed**"
        rows.append([what, f"{sign} {bound}", shown(value), met, shown(before)])
    return table(["", "target", "`words-v3`", "", "`words-v2`"], rows)


def page(sets, plot_name):
    """The page."""
    average = means([one["figures"] for one in sets])
    minhash = [one["minhash"] for one in sets]
    version = importlib.metadata.version("datasketch")
    return "\n".join(
        [
            HEAD,
            f"Measured on {datetime.date.today()}, with datasketch {version}.\n",
            targets_table(average, sets),
            f"![Recall and precision by distance]({plot_name})\n",
            "## Recipes\n",
            means_table(average, minhash),
            "MinHashLSH has no distance. Of web pages it sees the contents alone.\n",
            "## Sets\n",
            "Each set holds the texts of one package or more, in several releases;\n"
            "[`quality_sets.py`](../tests/python/quality_sets.py) names them and the rule for the second half.\n",
            sets_table(sets),
            "## Designs of pages\n",
            "What `--html main` takes of a page depends on its design. These are the same pages, as they are and with\n"
            "`<main>` around their contents:\n",
            designs_table([one for one in sets if one["designs"]]),
            "## Lengths\n",
            "Recall at distance 3 by the length of the shorter text, over the pairs of all sets of texts.\n",
            lengths_table([one["evaluation"] for one in sets if one["evaluation"]]),
        ]
    ).replace("\n\n\n", "\n\n").rstrip() + "\n"


def measured_texts(program, path):
    """What is known of a set of texts."""
    evaluation = evaluate(program, path)
    return {
        "texts": evaluation["texts"],
        "true_pairs": evaluation["true_pairs"],
        "evaluation": evaluation,
        "figures": recipe_figures(evaluation),
        "minhash": minhash_figures(texts_of(path), evaluation["true_pairs"]),
        "designs": None,
    }


def measured_pages(program, path, content, recipes):
    """The same of a set of web pages."""
    pages = Pages(program, texts_of(path), content)
    return {
        "texts": len(pages.contents),
        "true_pairs": pages.true_pairs,
        "evaluation": None,
        "figures": pages.figures_of_recipes(recipes),
        "minhash": minhash_figures([one.text for one in pages.contents], pages.true_pairs),
        "designs": pages.by_design("words-v3"),
    }


def main():
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--page", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    sets = []
    for half, name, path, content in write_sets(arguments.data.absolute()):
        if content:
            # Those that the sets of texts before it were measured with.
            recipes = dict.fromkeys(recipe for recipe, _ in sets[0]["figures"])
            measured = measured_pages(arguments.program, path, content, recipes)
        else:
            measured = measured_texts(arguments.program, path)
        sets.append({"half": half, "name": name, **measured})
        print(f"{name}: {measured['texts']} texts, {measured['true_pairs']} alike pairs", flush=True)
    picture = arguments.page.with_suffix(".svg")
    picture.write_text(plot(means([one["figures"] for one in sets])), encoding="utf-8")
    arguments.page.write_text(page(sets, picture.name), encoding="utf-8")
    print(f"wrote {arguments.page} and {picture.name}")


if __name__ == "__main__":
    main()

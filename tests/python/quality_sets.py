"""Sets of real texts with near-duplicates among them: packages, each in several versions.

The second half was fixed, with its releases, before any recipe was measured on it. For each kind of the first
half, and for descriptions of packages, it takes the first project found that has 200 pairs of alike texts. The
releases are spread evenly over a range, both ends included: three to seven, and more in steps of four if seven
are too few. Of these numbers each set takes the least that gives 200 pairs.

The set in Thai is in no half: it was found by the same rule, but while recipes were measured on it. It takes the
seven libraries of OpenUI5 with the most different texts, of each the first release of a minor version.
"""

import json
import pathlib
import re
import tarfile

from quality_fetch import (
    Stripped,
    cargo,
    comments,
    descriptions,
    files,
    members,
    npm,
    packages_of,
    pip,
    strings,
    wheels,
)


def releases(name, versions, sign="@"):
    """The releases of a package, by their names."""
    return [name + sign + version for version in versions.split()]


DJANGO = releases("Django", "3.2 4.1 4.2", "==")
SQLALCHEMY = releases("SQLAlchemy", "1.2.19 1.3.0 1.3.12 1.3.24", "==")
NPM = releases("npm", "1.4.28 2.15.12 3.10.10 4.6.1 5.3.0 6.0.0 6.14.18")
THREE = releases("three", "0.120.0 0.128.0 0.136.0")
ELECTRON = releases("electron-i18n", "1.908.0 1.1121.0 1.1482.0 1.2065.0 1.2661.0 1.2893.0 1.3136.0")
NALGEBRA = ["0.30.1", "0.31.4", "0.32.6", "0.33.2"]

CELERY = releases("celery", "5.2.1 5.2.4 5.3.1 5.3.6 5.5.1 5.6.1 5.7.0", "==")
TWISTED = releases("Twisted", "20.3.0 23.8.0 26.10.0", "==")
ESLINT = releases("eslint", "6.0.0 8.9.0 9.9.1 10.15.0")
CRANELIFT = ["0.123.20", "0.130.2", "0.137.1"]
STDLIB = releases("@stdlib/utils", "0.0.1 0.0.11 0.1.0 0.3.1 0.4.1")
DESCRIPTIONS = pathlib.Path(__file__).with_name("quality_descriptions.txt")
LINUX_COMMAND = releases("linux-command", "1.5.1 1.21.0 1.22.0")
NPM_SITE = releases(
    "npm", "1.4.28 2.1.16 2.9.0 2.14.6 2.15.6 3.3.10 3.8.5 3.10.10 5.0.3 6.4.1 6.13.5 6.14.18"
)
LABOUR_LAW = releases("@socialgouv/fiches-travail-data", "3.3.0 4.164.0 4.486.0 4.1174.0")
AKASHIC = releases(
    "@akashic/akashic-engine",
    "1.10.2 1.12.8 1.13.0 2.0.0 2.0.3 2.1.2 2.4.9 2.4.14 2.5.2 2.6.1 2.6.4 2.6.6 3.0.0 3.0.3 3.1.2 3.2.2 "
    "3.3.0 3.4.2 3.5.0 3.7.0 3.10.0 3.12.0 3.14.1 3.16.0 3.16.3 3.16.6 3.18.0 3.18.2 3.19.0 3.20.0 3.21.0 3.21.3",
)
VS_CODE = releases(
    "@codingame/monaco-vscode-language-pack-de",
    "1.83.5 1.83.16 4.3.2 5.2.0 8.0.3 9.0.3 11.1.2 13.1.4 14.0.6 15.0.3 18.1.3 20.2.1 21.6.0 22.1.4 24.2.0 25.1.2",
)

# The library and its releases. Not all have the same.
OPENUI5 = {
    "f": (
        "1.71.20 1.76.0 1.80.0 1.85.0 1.89.0 1.93.0 1.97.0 1.101.0 1.105.0 1.109.0 1.113.0 1.117.0 1.121.0 "
        "1.126.0 1.130.0 1.134.0 1.139.0 1.143.0 1.152.0"
    ),
    "m": (
        "1.71.0 1.75.0 1.79.0 1.84.0 1.88.0 1.93.0 1.97.0 1.101.0 1.105.0 1.109.0 1.113.0 1.117.0 1.121.0 "
        "1.126.0 1.131.0 1.135.0 1.140.0 1.144.0 1.152.0"
    ),
    "ui.fl": (
        "1.71.68 1.82.2 1.84.0 1.87.0 1.89.0 1.92.0 1.96.0 1.108.0 1.109.0 1.113.0 1.117.0 1.118.0 1.124.1 "
        "1.128.0 1.132.1 1.136.0 1.141.1 1.143.0 1.152.0"
    ),
    "ui.integration": (
        "1.84.0 1.87.0 1.89.0 1.92.0 1.96.0 1.108.0 1.109.0 1.113.0 1.116.0 1.118.0 1.124.1 1.128.0 1.131.0 "
        "1.132.1 1.136.0 1.141.0 1.143.0 1.146.0 1.150.0"
    ),
    "ui.mdc": (
        "1.91.0 1.92.0 1.96.0 1.108.0 1.109.0 1.113.0 1.116.0 1.117.1 1.118.0 1.120.0 1.124.1 1.128.0 1.131.0 "
        "1.132.1 1.136.0 1.139.0 1.143.0 1.146.0 1.152.0"
    ),
    "ui.table": (
        "1.74.0 1.84.0 1.87.0 1.91.0 1.96.0 1.97.0 1.108.0 1.110.0 1.113.0 1.117.1 1.120.0 1.121.5 1.128.0 "
        "1.132.1 1.136.0 1.140.0 1.143.0 1.146.0 1.152.0"
    ),
    "ui.unified": (
        "1.71.0 1.75.0 1.79.0 1.84.0 1.88.0 1.93.0 1.97.0 1.101.0 1.105.0 1.109.0 1.113.0 1.117.0 1.121.0 "
        "1.126.0 1.131.0 1.135.0 1.140.0 1.144.0 1.152.0"
    ),
}

LANGUAGES = {
    "de-DE": "German",
    "fr-FR": "French",
    "ja-JP": "Japanese",
    "ru-RU": "Russian",
    "zh-CN": "Chinese",
}
JAPANESE_LETTER = re.compile("[ぁ-ヿ一-龥]")
THAI_LETTER = re.compile("[ก-๛]")
ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


def manuals(archives):
    """The manuals by language, without those that are not translated."""
    found = {language: [] for language in LANGUAGES}
    for package, archive in archives.items():
        with tarfile.open(archive) as tar:
            name = "package/dist/docs.json"
            if name in tar.getnames():
                all_docs = json.load(tar.extractfile(name))
            else:
                all_docs = json.load(tar.extractfile("package/index.json"))["docs"]
        english = {place: manual(page).split() for place, page in all_docs["en-US"].items()}
        for language, texts in found.items():
            for place, page in all_docs[language].items():
                text = manual(page)
                if text.split() != english.get(place):
                    texts.append((package + place, text))
    return found


def manual(page):
    """The text of a manual, which is whole or in sections."""
    parts = [page.get("html")] if page.get("html") else [part["html"] for part in page.get("sections", [])]
    return "\n".join(piece for part in parts for piece in Stripped(part).text)


def labour_law(archives):
    """The pages of the French ministry of labour on the law, each as its title and its sections."""
    for package, text in members(archives, lambda name: name.endswith("/data/fiches-travail.json")):
        for page in json.loads(text):
            parts = [page["title"], page.get("intro") or ""]
            parts += [part.get(field) or "" for part in page["sections"] for field in ("title", "html")]
            yield f"{package}/{page['pubId']}", "\n".join(piece for part in parts for piece in Stripped(part).text)


def interface(archives):
    """The texts that an editor shows, each file those of one extension."""
    for name, text in members(archives, lambda name: name.endswith(".i18n.json")):
        yield name, "\n".join(strings(json.loads(text).get("contents", {})))


def thai_interface(archives):
    """The texts that a library of OpenUI5 shows, each file those of one part of it."""
    for name, text in members(archives, lambda name: name.endswith("_th.properties")):
        lines = (line.strip() for line in text.splitlines())
        values = (line.partition("=")[2] for line in lines if not line.startswith(("#", "!")))
        shown = "\n".join(ESCAPED.sub(lambda code: chr(int(code[1], 16)), value) for value in values)
        if len(THAI_LETTER.findall(shown)) >= 50:
            yield name, shown


def japanese_comments(archives):
    """The comments for documentation of files that are written in Japanese."""
    for name, code in members(archives, lambda name: name.endswith(".d.ts")):
        text = comments(code)
        if len(JAPANESE_LETTER.findall(text)) >= 50:
            yield name, text


def first_half(folder):
    """Name, the id of the element that holds the content if the texts are pages, and the texts of every set."""
    django = pip(DJANGO, folder)
    yield "docs (Django)", None, members(django, lambda name: "/docs/" in name and name.endswith(".txt"))
    yield "code (Python)", None, members(django, lambda name: "/django/" in name and name.endswith(".py"))
    readmes = npm(NPM, folder)
    yield "READMEs (npm)", None, members(readmes, lambda name: name.lower().endswith("/readme.md"))
    site = pip(SQLALCHEMY, folder)
    yield "web pages (SQLAlchemy)", "docs-body", members(site, lambda name: "/doc/" in name and name.endswith(".html"))
    three = npm(THREE, folder)
    code = ("package/src/", "package/examples/jsm/")
    yield "code (JavaScript)", None, members(three, lambda name: name.startswith(code) and name.endswith(".js"))
    nalgebra = cargo("nalgebra", NALGEBRA, folder)
    yield "code (Rust)", None, files(nalgebra, ".rs")
    for language, texts in manuals(npm(ELECTRON, folder)).items():
        yield f"manuals ({LANGUAGES[language]})", None, texts


def second_half(folder):
    """Name, the id of the element that holds the content if the texts are pages, and the texts of every set."""
    celery = pip(CELERY, folder)
    yield "docs (Celery)", None, members(celery, lambda name: "/docs/" in name and name.endswith((".rst", ".txt")))
    twisted = pip(TWISTED, folder)
    is_code = lambda name: "/src/twisted/" in name and name.endswith(".py")
    yield "code (Python, Twisted)", None, members(twisted, is_code)
    stdlib = npm(STDLIB, folder)
    yield "READMEs (stdlib)", None, members(stdlib, lambda name: name.lower().endswith("/readme.md"))
    site = npm(NPM_SITE, folder)
    is_page = lambda name: name.startswith("package/html/doc/") and name.endswith(".html")
    yield "web pages (npm)", "wrapper", members(site, is_page)
    eslint = npm(ESLINT, folder)
    is_code = lambda name: name.startswith("package/lib/") and name.endswith(".js")
    yield "code (JavaScript, ESLint)", None, members(eslint, is_code)
    cranelift = cargo("cranelift-codegen", CRANELIFT, folder)
    yield "code (Rust, Cranelift)", None, files(cranelift, ".rs")
    yield "package descriptions (Python)", None, descriptions(wheels(packages_of(DESCRIPTIONS), folder))
    commands = npm(LINUX_COMMAND, folder)
    yield "manuals (Chinese, Linux)", None, members(commands, lambda name: name.startswith("package/command/"))
    yield "manuals (French, labour law)", None, labour_law(npm(LABOUR_LAW, folder))
    yield "manuals (Japanese, Akashic)", None, japanese_comments(npm(AKASHIC, folder))
    yield "interface (German, VS Code)", None, interface(npm(VS_CODE, folder))


def in_no_half(folder):
    """Name, the id of the element that holds the content if the texts are pages, and the texts of every set."""
    libraries = [
        package for name, versions in OPENUI5.items() for package in releases(f"@openui5/sap.{name}", versions)
    ]
    yield "interface (Thai, OpenUI5)", None, thai_interface(npm(libraries, folder))


def write_sets(folder):
    """Writes every set as JSON lines; gives its half if it is in one, its name, its file, and the id of its contents."""
    folder.mkdir(parents=True, exist_ok=True)
    for half, sets in (("first", first_half), ("second", second_half), (None, in_no_half)):
        for name, content, texts in sets(folder / "packages"):
            path = folder / (name.replace(" ", "-").translate(str.maketrans("", "", "(),")) + ".jsonl")
            with open(path, "w", encoding="utf-8") as out:
                for identifier, text in texts:
                    out.write(json.dumps({"id": identifier, "text": text}) + "\n")
            yield half, name, pathlib.Path(path), content

"""Sets of real texts with near-duplicates among them: a few packages, each in several versions.

pip, npm and cargo fetch the packages, each from the registry that it is set up for. Nothing of a
package is run but what pip itself runs to read the metadata of a source package.
"""

import html.parser
import json
import pathlib
import subprocess
import sys
import tarfile

DJANGO = [f"Django=={version}" for version in ("3.2", "4.1", "4.2")]
SQLALCHEMY = [f"SQLAlchemy=={version}" for version in ("1.2.19", "1.3.0", "1.3.24")]
NPM = [f"npm@{version}" for version in ("1.4.28", "2.15.12", "3.10.10", "4.6.1", "5.3.0", "6.0.0", "6.14.18")]
THREE = [f"three@{version}" for version in ("0.120.0", "0.128.0", "0.136.0")]
ELECTRON = [
    f"electron-i18n@{version}" for version in ("1.908.0", "1.1121.0", "1.1482.0", "1.2065.0", "1.2661.0", "1.2893.0", "1.3136.0")
]
NALGEBRA = ["0.30.1", "0.31.4", "0.32.6", "0.33.2"]

LANGUAGES = {
    "de-DE": "German",
    "fr-FR": "French",
    "ja-JP": "Japanese",
    "ru-RU": "Russian",
    "zh-CN": "Chinese",
}


class Stripped(html.parser.HTMLParser):
    """The text of a fragment of HTML, with a line break at each tag."""

    def __init__(self, markup):
        super().__init__()
        self.text = []
        self.feed(markup)
        self.close()

    def handle_data(self, data):
        self.text.append(data)


def run(command, folder):
    """Runs a program that fetches packages; what it prints goes to standard error."""
    print("$ " + " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)


def pip(packages, folder):
    """Source packages, by their names."""
    folder = folder / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    archives = {}
    for package in packages:
        name = package.replace("==", "-") + ".tar.gz"
        if not (folder / name).exists():
            fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            run([sys.executable, *fetch, package], folder)
        archives[package] = folder / name
    return archives


def npm(packages, folder):
    """Packages of npm, by their names."""
    folder = folder / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    archives = {}
    for package in packages:
        archives[package] = folder / (package.replace("@", "-") + ".tgz")
        if not archives[package].exists():
            run(["npm", "pack", "--silent", package], folder)
    return archives


def cargo(name, versions, folder):
    """The folders of a crate in versions that cargo takes for incompatible, and so keeps beside each other."""
    folder = folder / "cargo"
    folder.mkdir(parents=True, exist_ok=True)
    manifest = '[package]\nname = "sets"\nversion = "0.0.0"\n[lib]\npath = "lib.rs"\n[workspace]\n[dependencies]\n'
    for number, version in enumerate(versions):
        manifest += f'v{number} = {{ package = "{name}", version = "={version}", default-features = false }}\n'
    (folder / "Cargo.toml").write_text(manifest)
    (folder / "lib.rs").write_text("")
    if not (folder / "vendor").exists():
        run(["cargo", "vendor", "--quiet", "--versioned-dirs", "vendor"], folder)
    return {version: folder / "vendor" / f"{name}-{version}" for version in versions}


def members(archives, is_wanted):
    """The texts of files in archives, with their package and path as ids."""
    for package, archive in archives.items():
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and is_wanted(member.name):
                    text = tar.extractfile(member).read().decode("utf-8", "replace")
                    yield f"{package}/{member.name}", text


def files(folders, ending):
    """The texts of files in folders."""
    for version, folder in folders.items():
        for path in sorted(folder.rglob(f"*{ending}")):
            yield f"{version}/{path.relative_to(folder)}", path.read_text("utf-8", "replace")


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


def all_sets(folder):
    """Name, whether it holds pages, and the texts of every set."""
    django = pip(DJANGO, folder)
    yield "docs (Django)", False, members(django, lambda name: "/docs/" in name and name.endswith(".txt"))
    yield "code (Python)", False, members(django, lambda name: "/django/" in name and name.endswith(".py"))
    readmes = npm(NPM, folder)
    yield "READMEs (npm)", False, members(readmes, lambda name: name.lower().endswith("/readme.md"))
    site = pip(SQLALCHEMY, folder)
    yield "web pages (SQLAlchemy)", True, members(site, lambda name: "/doc/" in name and name.endswith(".html"))
    three = npm(THREE, folder)
    code = ("package/src/", "package/examples/jsm/")
    yield "code (JavaScript)", False, members(three, lambda name: name.startswith(code) and name.endswith(".js"))
    nalgebra = cargo("nalgebra", NALGEBRA, folder)
    yield "code (Rust)", False, files(nalgebra, ".rs")
    for language, texts in manuals(npm(ELECTRON, folder)).items():
        yield f"manuals ({LANGUAGES[language]})", False, texts


def write_sets(folder):
    """Writes every set as JSON lines; gives its name, its file and whether it holds pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, is_html, texts in all_sets(folder / "packages"):
        path = folder / (name.replace(" ", "-").replace("(", "").replace(")", "") + ".jsonl")
        with open(path, "w", encoding="utf-8") as out:
            for identifier, text in texts:
                out.write(json.dumps({"id": identifier, "text": text}) + "\n")
        yield name, pathlib.Path(path), is_html

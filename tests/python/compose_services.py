"""Runs the services of `deploy/compose/compose.yaml` as plain processes on this machine, and uses them as a client.

A service gets an address of loopback of its own, so ports stay as they are. Names of services become their addresses,
and paths of a container become paths below a folder that is made for the service.

    python tests/python/compose_services.py --program target/debug/simshard --etcd ETCD --python PYTHON

PYTHON has the package `simshard`. OpenSSL and Prometheus are the machine's. Grafana is left out: Prometheus answers the
queries of its dashboard.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "deploy/compose/compose.yaml"
DASHBOARD = ROOT / "deploy/grafana/simshard.json"

# Which of them a container brings along.
SCRIPTS = "/usr/share/simshard"

ONE_SHOT_SECONDS = 120
READY_SECONDS = 60

TEXTS = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on in the warm light of the afternoon.",
    "Near-duplicate pages differ in a date, a name or a link, and crawlers see each of them as a new page.",
]

# A client in Python: it inserts, and finds what it inserted.
CLIENT = """
import sys, simshard
router, authority, token = sys.argv[1:]
with simshard.Client(router, ca=authority, token=open(token).read()) as client:
    corpus = client.corpus("default")
    corpus.insert(ids=["python"], fingerprints=[12345])
    (match,) = corpus.find(fingerprints=[12344])
    assert list(match.ids) == ["python"] and match.distance == 1, match
"""


class Failure(Exception):
    """What the services do is not what they should do."""


class Service:
    """A service of the file, as a process."""

    def __init__(self, name, described, address):
        self.name = name
        self.described = described
        self.address = address
        self.process = None


class Composition:
    """The services of the file, in a folder."""

    def __init__(self, folder, programs):
        self.folder = pathlib.Path(folder)
        self.programs = programs
        # No other test listens there.
        net = f"127.{random.randrange(200, 250)}.{random.randrange(256)}"
        services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
        self.services = {
            name: Service(name, described, f"{net}.{number}")
            for number, (name, described) in enumerate(services.items(), 10)
        }

    def local(self, service, word):
        """A word of a command or a variable, with paths and addresses of this machine."""
        word = re.sub(r"\b0\.0\.0\.0\b|\b127\.0\.0\.1\b", service.address, word)
        names = "|".join(self.services)
        # A host is behind `//`, or one of several, or all of the word.
        host = rf"(?:(?<=//)|(?<=,)|^)({names})(?=[:,]|$)(?!://)"
        word = re.sub(host, lambda found: self.services[found[1]].address, word)
        return re.sub(r"(^|=)/", rf"\1{self.root(service)}/", word)

    def root(self, service):
        return self.folder / "roots" / service.name

    def prepare(self, service):
        """Makes the folder that stands for the file system of the container."""
        root = self.root(service)
        for volume in service.described.get("volumes", []):
            source, target = volume.split(":")[:2]
            place = root / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not source.startswith("."):
                source = self.folder / "volumes" / source
                source.mkdir(parents=True, exist_ok=True)
                place.unlink(missing_ok=True)
                place.symlink_to(source)
            elif source.endswith("prometheus.yml"):
                text = (COMPOSE.parent / source).read_text(encoding="utf-8")
                for other in self.services.values():
                    text = text.replace(f'"{other.name}:', f'"{other.address}:')
                # A rate takes two of its looks.
                text = text.replace("scrape_interval: 15s", "scrape_interval: 1s")
                place.write_text(text, encoding="utf-8")
            else:
                shutil.copy(COMPOSE.parent / source, place)
        for mounted in service.described.get("tmpfs", []):
            (root / mounted.split(":")[0].lstrip("/")).mkdir(parents=True, exist_ok=True)
        scripts = root / SCRIPTS.lstrip("/")
        scripts.parent.mkdir(parents=True, exist_ok=True)
        scripts.unlink(missing_ok=True)
        scripts.symlink_to(ROOT / "deploy")

    def start(self, name, command=None):
        """Starts the process of a service, with another command if one is given."""
        service = self.services[name]
        self.prepare(service)
        described = service.described
        program, *before = described.get("entrypoint") or [image_of(described)]
        words = command or described.get("command", [])
        words = [self.local(service, word) for word in [*before, *words]]
        variables = described.get("environment", {})
        variables = {
            key: value if key == "SIMSHARD_NAME" else self.local(service, value)
            for key, value in variables.items()
        }
        path = f"{self.programs['simshard'].parent}:{os.environ['PATH']}"
        log = self.folder / f"{name}.log"
        with open(log, "a", encoding="utf-8") as log:
            service.process = subprocess.Popen(
                [self.programs.get(program, program), *words],
                # Logs tell all that they can: secrets are looked for in them.
                env={"PATH": path, "SIMSHARD_LOG": "trace", **variables},
                stdin=subprocess.PIPE if command else subprocess.DEVNULL,
                stdout=subprocess.PIPE if command else log,
                stderr=log,
                text=True,
            )
        return service.process

    def run(self, name, command=None, documents=None):
        """Runs a service that ends, with documents on standard input. Answers what it prints."""
        process = self.start(name, command)
        printed, _ = process.communicate(documents, timeout=ONE_SHOT_SECONDS)
        if process.returncode != 0:
            raise Failure(f"{name} {command or ''} ended with {process.returncode}: {self.log(name)}")
        return printed

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def stop(self):
        for service in self.services.values():
            if service.process and service.process.poll() is None:
                service.process.send_signal(signal.SIGKILL)
                service.process.wait()

    def wait_until_ready(self, name):
        """As the health check of the image does."""
        service = self.services[name]
        http = self.local(service, service.described["environment"]["SIMSHARD_HTTP"])
        ready = ["ready", "--http", http, "--wait", str(READY_SECONDS)]
        asked = subprocess.run([self.programs["simshard"], *ready], capture_output=True, text=True)
        if asked.returncode != 0:
            raise Failure(f"{name}: {asked.stderr}{self.log(name)}")


    def ask_prometheus(self, path, is_enough):
        """Asks it again and again until an answer is enough."""
        service = self.services["prometheus"]
        url = f"http://{service.address}:9090/api/v1/{path}"
        end, answer = time.monotonic() + READY_SECONDS, None
        while time.monotonic() < end:
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answered:
                answer = json.load(answered)["data"]
                if is_enough(answer):
                    return
            # A pause, unless it has died.
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.process.wait(timeout=0.2)
        raise Failure(f"Prometheus answers {path} with {answer}: {self.log('prometheus')}")


def image_of(described):
    """The program of a service: the image has its name, but for its place and version."""
    return described["image"].rsplit("/", 1)[-1].split(":")[0]


def check(is_so, problem):
    if not is_so:
        raise Failure(problem)


def start_all(services):
    services.run("secrets")
    for name in ["etcd", "n1", "n2", "n3"]:
        services.start(name)
    services.run("begin")
    for name in ["r1", "r2", "prometheus"]:
        services.start(name)
    for name in ["n1", "n2", "n3", "r1", "r2"]:
        services.wait_until_ready(name)


def use_from_the_command_line(services):
    """Inserts texts by one router, and finds them by the other, also while a node is dead."""
    lines = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(TEXTS)]
    documents = "\n".join(lines) + "\n"
    services.run("admin", ["corpus", "create", "default"])
    services.run("admin", ["insert", "--format", "jsonl"], documents)
    find = ["find", "--format", "jsonl", "--router", "https://r2:7460"]
    check_found(services.run("admin", find, documents))
    services.services["n2"].process.kill()
    services.services["n2"].process.wait()
    check_found(services.run("admin", find, documents))
    services.start("n2")
    services.wait_until_ready("n2")
    # It runs at each start of all services.
    services.run("begin")


def check_found(printed):
    found = [json.loads(line) for line in printed.splitlines()]
    ids = [match["ids"] for line in found for match in line["matches"]]
    check(ids == [["0"], ["1"]], f"found {printed}")


def use_from_python(services, python):
    router = f"https://{services.services['r1'].address}:7460"
    secrets = services.folder / "volumes/admin-secrets"
    arguments = [router, secrets / "ca.pem", secrets / "token"]
    subprocess.run([python, "-c", CLIENT, *arguments], check=True)


def refuse_strangers(services):
    """Without a token, or the certificate of a cluster, nothing opens. Without the authority, no client connects."""
    operator = services.services["admin"].described["environment"]
    for missing, told in [
        ("SIMSHARD_TOKEN_FILE", "token"),
        ("SIMSHARD_CA", "certificate"),
    ]:
        kept = operator.pop(missing)
        asked = services.start("admin", ["corpus", "list"])
        asked.communicate(timeout=ONE_SHOT_SECONDS)
        operator[missing] = kept
        check(asked.returncode != 0, f"without {missing}, corpora are listed")
        lines = services.log("admin").splitlines()
        *_, last = [line for line in lines if line.startswith("error: ")]
        check(told in last, f"without {missing}: {last}")


def renew_certificates(services):
    """New certificates replace those of before, and clients go on."""
    secrets = services.folder / "volumes/router-secrets"
    before = (secrets / "tls.pem").read_text(encoding="utf-8")
    services.run("secrets")
    check((secrets / "tls.pem").read_text(encoding="utf-8") != before, "certificates stay as they were")
    check(services.run("admin", ["corpus", "list", "--json"]), "no corpus after the renewal")


def keep_secrets(services):
    """No log has the token, or a part of a private key."""
    secrets = [(services.folder / "volumes/admin-secrets/token").read_text(encoding="utf-8").strip()]
    for key in services.folder.glob("volumes/*/*.key"):
        lines = key.read_text(encoding="utf-8").splitlines()
        # All keys of their kind begin as the first line does.
        secrets += lines[2:-1]
    for log in services.folder.glob("*.log"):
        text = log.read_text(encoding="utf-8")
        leaked = [secret for secret in secrets if secret in text]
        check(not leaked, f"{log.name} has {len(leaked)} secrets")
        check(log.stem not in ["n1", "r1"] or " TRACE " in text, f"{log.name} does not tell all")


def be_watched(services):
    """Prometheus reaches all processes, and each query of the dashboard has an answer."""
    all_up = lambda answer: sorted(target["health"] for target in answer["activeTargets"]) == ["up"] * 5
    services.ask_prometheus("targets", all_up)
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    check(len(queries) > 20, f"the dashboard has only {len(queries)} queries")
    for query in queries:
        query = query.replace("$__rate_interval", "1m")
        services.ask_prometheus(f"query?query={urllib.parse.quote(query)}", lambda answer: answer["result"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for program in ["program", "etcd", "python"]:
        parser.add_argument(f"--{program}", type=pathlib.Path, required=True)
    args = parser.parse_args()
    programs = {"simshard": args.program.resolve(), "etcd": args.etcd}
    with tempfile.TemporaryDirectory(prefix="simshard-compose-") as folder:
        services = Composition(folder, programs)
        try:
            start_all(services)
            use_from_the_command_line(services)
            use_from_python(services, args.python)
            refuse_strangers(services)
            renew_certificates(services)
            be_watched(services)
            keep_secrets(services)
        except Failure as failure:
            sys.exit(f"{failure}")
        finally:
            services.stop()


if __name__ == "__main__":
    main()

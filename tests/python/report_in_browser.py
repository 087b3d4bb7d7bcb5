"""The HTML report of the batch commands, looked at with a real browser.

    report_in_browser.py --browser PROGRAM --page-maker PROGRAM --simshard PROGRAM
                         [--screenshots FOLDER]

The page maker prints a page, given the name of a report and the ids of documents. Another page is
what `simshard find-clusters --report` says of a file with these ids, and one is that of
`simshard evaluate --report`. Every page is laid out at three widths, light and dark, and must pass
`report_checks.js` each time; no page may ask for anything, nor write to the console. The browser is
driven through its DevTools pipe and keeps all its files in a folder that is removed.
"""

import argparse
import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WIDTHS = (320, 390, 768, 1280, 1440)
SCHEMES = ("light", "dark")

# A browser that has not answered by then never will.
PATIENCE = 60

OPTIONS = """
    --headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run
    --no-default-browser-check --disable-background-networking --disable-component-update
    --disable-sync --disable-default-apps --disable-extensions --disable-breakpad
    --hide-scrollbars --force-color-profile=srgb --remote-debugging-pipe
""".split()

# Ids that try to get out of their place, each with what a reader must see of it.
HOSTILE = {
    '"><script>window.injected = 1</script>': '"><script>window.injected = 1</script>',
    "'><img src=x onerror=window.injected=1>": "'><img src=x onerror=window.injected=1>",
    "</bdi></section><style>body{display:none}</style><!--": "</bdi></section><style>body{display:none}</style><!--",
    "&lt;b&gt; &amp; &#60;": "&lt;b&gt; &amp; &#60;",
    "photo-\u202egpj.exe": "photo-U+202Egpj.exe",
    "two\nlines\tand \u001b[31mred": "two\\nlines\\tand U+001B[31mred",
    "  שלום/ملف  عربي.html": "  שלום/ملف  عربي.html",
    "x" * 1024: "x" * 1024,
}

# How a good page is spoilt, and a part of the problem that must then be reported.
SPOILT = {
    "a script": ("</main>", "</main><script>window.injected = 1</script>", "was run"),
    "an exception": ("</main>", "</main><script>null.x</script>", "exception"),
    "an image": ("</main>", '</main><img alt="" src="http://127.0.0.1:9/x.png">', "asks for"),
    "a wide box": ("</main>", '</main><pre>' + "w" * 300 + "</pre>", "px wide on a screen"),
    "a faint text": ("</main>", '</main><p><font color="#999">faint</font></p>', "contrast"),
    "a short bar": ('height="50%" width="', 'height="50%" width="1', "px long"),
    "a hexadecimal number": ("</code></h3>", "f</code></h3>", "no decimal number"),
    "a jump": ("<h2", "<h4", "jumps"),
    "a hidden section": ("</style>", "#sizes .body { display: none }</style>", "shows nothing"),
    "a mark of colour": ("</style>", "mark { text-decoration: none !important }</style>", "by colour alone"),
    "one side": ("</style>", ".sides { display: block !important }</style>", "not where they should be"),
    "no outline": ("</style>", "a:focus-visible { outline: none !important }</style>", "focus"),
}


class Browser:
    """A browser that is driven by DevTools messages over a pair of pipes, each ended by a NUL."""

    def __init__(self, program, folder):
        # The browser reads descriptor 3 and writes descriptor 4.
        plumbing = 'exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2'
        self.log = folder / "log"
        # Whatever it or its launcher writes to a home folder goes here too.
        places = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", plumbing, program, *OPTIONS, f"--user-data-dir={folder / 'profile'}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **{place: str(folder) for place in places}},
            )
        self.last_id = 0
        self.unread = b""
        self.events = []

    def call(self, method, session=None, **params):
        """Sends a command and waits for its answer; what happens meanwhile goes to `events`."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        while True:
            answer = self.read()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        """Waits for an event, unless it has come already."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read())

    def read(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.unread:
            pipe = self.process.stdout
            ready, _, _ = select.select([pipe], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(pipe.fileno(), 1 << 20) if ready else b""
            if not piece:
                state = "ended" if ready else "is silent"
                raise RuntimeError(f"the browser {state}:\n{self.log.read_text(errors='replace')}")
            self.unread += piece
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()


class Page:
    """A page of its own, opened at a file."""

    def __init__(self, browser, file):
        self.browser = browser
        self.url = file.as_uri()
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=self.url)
        browser.wait_for("Page.loadEventFired")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def lay_out(self, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"the checks fail: {answer['exceptionDetails']}")
        return answer["result"]["value"]

    def focus_problems(self):
        """Whether a key leads to a link, and one sees it."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        focus = "(s => [document.activeElement.localName, s.outlineStyle, parseFloat(s.outlineWidth)])"
        name, style, width = self.evaluate(f"{focus}(getComputedStyle(document.activeElement))")
        seen = name == "a" and style != "none" and width >= 2
        return [] if seen else [f"the focus does not show: <{name}> {style} {width}"]

    def noise(self):
        """What the page asked for or wrote to the console."""
        problems = []
        for event in self.browser.events:
            method, params = event["method"], event.get("params", {})
            if method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if url != self.url and not url.startswith("data:"):
                    problems.append(f"asks for {url}")
            elif method == "Runtime.exceptionThrown":
                problems.append(f"an exception: {params['exceptionDetails']['text']}")
            elif method in ("Runtime.consoleAPICalled", "Log.entryAdded"):
                problems.append(f"writes to the console: {params}")
        return problems

    def screenshot(self, file):
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)


def problems_of(browser, file, texts, screenshots=None):
    checks = Path(__file__).with_name("report_checks.js").read_text()
    question = f"{checks}({json.dumps({'texts': texts})})"
    page = Page(browser, file)
    problems = []
    for scheme in SCHEMES:
        for width in WIDTHS:
            page.lay_out(width, scheme)
            problems += [f"{scheme}, {width} px: {problem}" for problem in page.evaluate(question)]
            if screenshots:
                page.screenshot(screenshots / f"{file.stem}-{scheme}-{width}.png")
    problems += page.focus_problems() + page.noise()
    page.close()
    return problems


def make_page(maker, folder, report, ids):
    printed = subprocess.run([maker, report, *ids], check=True, stdout=subprocess.PIPE)
    file = folder / f"{report}.html"
    file.write_bytes(printed.stdout)
    return file


def find_clusters(program, folder, ids):
    """The report of a real run: documents with one text, so that they are one cluster."""
    documents = folder / "documents.jsonl"
    lines = [json.dumps({"id": id, "text": "the same four words"}) + "\n" for id in ids]
    documents.write_text("".join(lines))
    file = folder / "real.html"
    command = [program, "find-clusters", documents, "--report", file, "--output", folder / "clusters"]
    subprocess.run(command, check=True)
    return file


def evaluate(program, folder):
    """The report of a real evaluation: texts of words, each of them twice, with a word more."""
    documents = folder / "texts.jsonl"
    texts = [" ".join(f"word{text * word % 997}" for word in range(1, 61)) for text in range(1, 101)]
    lines = [
        json.dumps({"id": f"{number}-{more}", "text": text + more}) + "\n"
        for number, text in enumerate(texts)
        for more in ("", " more")
    ]
    documents.write_text("".join(lines))
    file = folder / "evaluation.html"
    subprocess.run([program, "evaluate", documents, "--report", file], check=True, stdout=subprocess.DEVNULL)
    return file


def spoil(good, folder, change):
    """A page with something wrong, which its policy does not forbid."""
    text = good.read_text()
    old, new, _ = change
    assert old in text, f"the page holds no {old}"
    file = folder / "spoilt.html"
    file.write_text(text.replace(old, new, 1).replace("Content-Security-Policy", "x", 1))
    return file


def look(browser, maker, simshard, folder, screenshots):
    """All problems of all pages."""
    problems = []
    ids, seen = list(HOSTILE), list(HOSTILE.values())
    pages = {"everything": seen, "extremes": seen, "nothing": []}
    files = {make_page(maker, folder, report, ids): texts for report, texts in pages.items()}
    files[find_clusters(simshard, folder, ids)] = seen
    files[evaluate(simshard, folder)] = []
    for file, texts in files.items():
        found = problems_of(browser, file, texts, screenshots)
        print(f"{file.stem}: {file.stat().st_size} bytes, {len(found)} problems")
        problems += [f"{file.stem}: {problem}" for problem in found]

    good = folder / "everything.html"
    for name, change in SPOILT.items():
        found = problems_of(browser, spoil(good, folder, change), seen)
        if not any(change[2] in problem for problem in found):
            problems.append(f"{name} on the page is not noticed")
    print(f"{len(SPOILT)} spoilt pages looked at")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--browser", required=True)
    parser.add_argument("--page-maker", required=True)
    parser.add_argument("--simshard", required=True)
    parser.add_argument("--screenshots", type=Path, help="also write pictures of all pages here")
    arguments = parser.parse_args()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="simshard-report-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        browser = Browser(arguments.browser, folder)
        try:
            makers = arguments.page_maker, arguments.simshard
            problems = look(browser, *makers, folder, arguments.screenshots)
        finally:
            browser.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

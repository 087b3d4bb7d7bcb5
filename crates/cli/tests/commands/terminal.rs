//! Nothing from outside is obeyed by a terminal, whatever command shows it (TE1).

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use serde_json::Value;
use simshard_runtime::terminal::is_obeyed;
use simshard_testkit::{Process, run};

use crate::BINARY;

/// Both ends of a terminal.
struct Terminal {
    screen: File,
    end: OwnedFd,
}

impl Terminal {
    fn open() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let screen = openpt(flags).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let end = ioctl_tiocgptpeer(&screen, flags).unwrap();
        Self {
            screen: screen.into(),
            end,
        }
    }

    /// What it is sent, until it holds this text or all programs have ended.
    fn shown_until(self, text: &str) -> String {
        let Self { mut screen, end } = self;
        drop(end);
        let mut shown = Vec::new();
        let mut buffer = [0; 4096];
        // Once no program has the other end, reading fails.
        while let Ok(bytes @ 1..) = screen.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..bytes]);
            if !text.is_empty() && String::from_utf8_lossy(&shown).contains(text) {
                break;
            }
        }
        String::from_utf8(shown).unwrap()
    }
}

/// Which stream of a command a terminal shows.
#[derive(Clone, Copy, Debug)]
enum Stream {
    Output,
    Error,
}

/// Starts a command with one stream on a terminal, and colours off: those are escape sequences of our own.
fn start(command: &mut Command, stream: Stream) -> (Terminal, Child) {
    let terminal = Terminal::open();
    let end = Stdio::from(terminal.end.try_clone().unwrap());
    let command = command.env("NO_COLOR", "1").stdin(Stdio::null());
    let child = match stream {
        Stream::Output => command.stdout(end).stderr(Stdio::null()).spawn(),
        Stream::Error => command.stdout(Stdio::null()).stderr(end).spawn(),
    };
    // The command holds the end as well.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    (terminal, child.unwrap())
}

/// What a command shows on a terminal, without anything that this obeys but the line breaks and tabs of our own.
fn shown(command: &mut Command, stream: Stream) -> String {
    let (terminal, mut child) = start(command, stream);
    let shown = terminal.shown_until("").replace("\r\n", "\n");
    child.wait().unwrap();
    assert_plain(&shown);
    shown
}

fn assert_plain(shown: &str) {
    let obeyed = |character| is_obeyed(character) && !matches!(character, '\n' | '\t');
    let found: Vec<char> = shown.chars().filter(|&one| obeyed(one)).collect();
    assert!(found.is_empty(), "{found:?} in {shown:?}");
}

fn simshard<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args);
    command
}

/// Every character that a terminal obeys, but for those that TSV cannot hold.
fn hostile() -> String {
    let held = |character: &char| !matches!(character, '\0' | '\t' | '\n' | '\r');
    let all = ('\0'..=char::MAX).filter(|&character| is_obeyed(character));
    format!("a{}b", all.filter(held).collect::<String>())
}

/// A file of documents whose ids are all hostile, and equal texts.
fn documents(folder: &Path) -> PathBuf {
    let path = folder.join("documents.jsonl");
    let line = |number: u32| {
        let id = format!("{number}{}", hostile());
        serde_json::json!({ "id": id, "text": "one text" }).to_string() + "\n"
    };
    fs::write(&path, line(1) + &line(2)).unwrap();
    path
}

#[test]
fn tsv_is_escaped_on_a_terminal_and_exact_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = documents(folder.path());
    let path = path.to_str().unwrap();
    for command in ["hash", "find-pairs", "find-clusters"] {
        let args = [command, "--output-format", "tsv", path];
        let on_terminal = shown(&mut simshard(args), Stream::Output);
        assert!(on_terminal.contains(r"1a\u{1}\u{2}"), "{on_terminal}");
        let piped = String::from_utf8(run(BINARY, args, "").stdout).unwrap();
        assert!(piped.contains(&format!("1{}\t", hostile())), "{piped:?}");
        assert_eq!(piped.lines().count(), on_terminal.lines().count());
        let to_file = folder.path().join("out.tsv");
        let to_file = to_file.to_str().unwrap();
        run(BINARY, [&args[..], &["--output", to_file]].concat(), "");
        assert_eq!(fs::read_to_string(to_file).unwrap(), piped);
    }
}

#[test]
fn texts_are_harmless_on_a_terminal_and_exact_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page");
    let text = format!("one\t{}\n\ntwo\n", hostile());
    fs::write(&path, &text).unwrap();
    let args = ["text", "--format", "files", path.to_str().unwrap()];
    let on_terminal = shown(&mut simshard(args), Stream::Output);
    assert!(on_terminal.starts_with("one\ta\\u{1}"), "{on_terminal}");
    assert!(on_terminal.ends_with("b\n\ntwo\n"), "{on_terminal}");
    assert_eq!(run(BINARY, args, "").stdout, text.as_bytes());
}

#[test]
#[cfg(feature = "parquet")]
fn parquet_is_not_written_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = documents(folder.path());
    let args = ["hash", "--output-format", "parquet", path.to_str().unwrap()];
    assert_eq!(shown(&mut simshard(args), Stream::Output), "");
    assert!(!run(BINARY, args, "").stdout.is_empty());
}

#[test]
fn json_is_escaped_everywhere_and_holds_the_same_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = documents(folder.path());
    let path = path.to_str().unwrap();
    let router = Process::serve(BINARY, ["serve", "--listen", "127.0.0.1:0"]);
    let url = router.url();
    run(BINARY, ["insert", path, "--router", url], "");
    let find = ["find", path, "--router", url];
    let scan = ["corpus", "scan", "default", "--router", url];
    let scan_jsonl = [&scan[..], &["--output-format", "jsonl"]].concat();
    let ids = [1, 2].map(|number| format!("{number}{}", hostile()));
    for args in [&find[..], &scan_jsonl, &["find-pairs", path]] {
        let on_terminal = shown(Command::new(BINARY).args(args), Stream::Output);
        let piped = String::from_utf8(run(BINARY, args, "").stdout).unwrap();
        assert_eq!(piped, on_terminal);
        for line in piped.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            let found = match args[0] {
                "find" => &value["matches"][0]["ids"],
                "corpus" => &value["id"],
                _ => &value,
            };
            let is_known = |id: &Value| ids.iter().any(|known| id == known);
            let all_known = match found.as_array() {
                Some(found) => found.len() == 2 && found.iter().all(is_known),
                None => is_known(found),
            };
            assert!(all_known, "{found}");
        }
        assert!(!piped.is_empty());
    }
    let table = shown(&mut simshard(scan), Stream::Output);
    assert!(table.contains(r"\u{1b}"), "{table}");
}

#[test]
fn errors_are_one_line_whatever_they_quote() {
    let line = format!("x{}\r\nerror: all is well", hostile());
    let router = Process::serve(BINARY, ["serve", "--listen", "127.0.0.1:0"]);
    let no_folder = format!("{line}/out.tsv");
    let clap_tells_more = Some("\nUsage: simshard find");
    for (mut command, more) in [
        (simshard(["hash", &line]), None),
        (simshard(["hash", "--output", &no_folder]), None),
        (simshard(["corpus", "show", &line]), None),
        (simshard(["find", "--text", "a", "--corpus", &line]), None),
        (simshard(["find", "--text", "a", "--router", &line]), None),
        (simshard(["storage", "inspect", &line]), None),
        (simshard(["find", "--limit", &line]), None),
        (simshard(["find", "--fingerprint", &line]), None),
        (simshard(["find", &format!("--{line}")]), clap_tells_more),
        (simshard([&line]), None),
    ] {
        let router = command.env("SIMSHARD_ROUTER", router.url());
        let shown = shown(router, Stream::Error);
        assert!(shown.starts_with("error: "), "{shown}");
        assert!(shown.contains(r"\u{1b}"), "{shown}");
        assert!(!shown.contains("\nerror: "), "{shown}");
        assert!(more.is_none_or(|more| shown.contains(more)), "{shown}");
    }
    let timeout = &mut simshard(["find", "--text", "a"]);
    let shown = shown(timeout.env("SIMSHARD_TIMEOUT_SECONDS", line), Stream::Error);
    assert!(shown.contains(r"\u{1b}"), "{shown}");
}

#[test]
fn logs_are_one_line_an_event_whatever_they_quote() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["human", "json"] {
        let directory = folder.path().join(format!("{}\n{format}", hostile()));
        let mut command = simshard(["serve", "--listen", "127.0.0.1:0", "--log-format", format]);
        let command = command.arg("--data").arg(directory);
        let (terminal, mut child) = start(command, Stream::Error);
        let shown = terminal.shown_until("router serves").replace("\r\n", "\n");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_plain(&shown);
        let escaped = ["u{202e}", "u202e"].map(|text| shown.contains(text));
        assert!(escaped.contains(&true), "{shown}");
        for line in shown.lines() {
            let is_event = line.starts_with('{') || line.starts_with("20");
            assert!(is_event, "{line} in {shown}");
        }
    }
}

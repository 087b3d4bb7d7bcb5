//! Files of tokens, good and bad ones.

use super::*;

/// A file with these entries.
fn file(entries: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    fs::write(&path, entries).unwrap();
    (folder, path)
}

fn hex(token: &str) -> String {
    TokenDigest::of(token.as_bytes()).to_string()
}

fn principal(tokens: &Tokens, token: &str) -> Option<Principal> {
    let owner = tokens.owner(&TokenDigest::of(token.as_bytes()));
    owner.map(|(principal, _)| principal)
}

/// Has a changed file used.
fn look_twice(tokens: &Tokens) -> Result<bool, TokensError> {
    assert!(!tokens.files().look()?);
    tokens.files().look()
}

fn entry(name: &str, token: &str, more: &str) -> String {
    let digest = hex(token);
    format!("[[tokens]]\nname = {name:?}\nsha256 = {digest:?}\n{more}\n")
}

fn name_of(tokens: &Tokens, token: &str) -> Option<String> {
    principal(tokens, token).map(|principal| principal.name.to_string())
}

/// AU1.
#[test]
fn a_token_is_that_of_its_entry_until_it_expires() {
    let entries = [
        entry("crawler", "one", "role = \"write\""),
        entry(
            "late",
            "two",
            "role = \"read\"\nexpires = \"2020-01-01T00:00:00Z\"",
        ),
        entry(
            "soon",
            "three",
            "role = \"admin\"\nexpires = \"2999-12-31T23:59:59+01:00\"",
        ),
    ];
    let (_folder, path) = file(&entries.concat());
    let tokens = Tokens::load(&path).unwrap();
    let crawler = principal(&tokens, "one").unwrap();
    assert_eq!((&*crawler.name, crawler.role), ("crawler", Role::Write));
    assert_eq!(name_of(&tokens, "two"), None);
    assert_eq!(name_of(&tokens, "three").as_deref(), Some("soon"));
    for unknown in ["", "four", "One", "one ", &hex("one")] {
        assert_eq!(name_of(&tokens, unknown), None, "{unknown}");
    }
    assert!(Role::Read < Role::Write && Role::Write < Role::Admin);
}

/// AU2, and AU3.
#[test]
fn an_entry_that_is_made_is_read_as_it_was_meant() {
    let corpora = ["news", "blogs"].map(str::to_owned);
    let crawler = Principal {
        name: "crawler".into(),
        role: Role::Write,
        corpora: Some(Arc::new(corpora.into_iter().collect())),
        limits: Limits {
            requests_per_second: Some(7),
            in_flight_mib: Some(8),
        },
    };
    let never = Principal {
        corpora: None,
        name: "never".into(),
        ..crawler.clone()
    };
    let later = SystemTime::now() + std::time::Duration::from_secs(3600);
    let entries = [
        token_entry(&crawler, b"one", Some(later)).unwrap(),
        token_entry(&never, b"two", Some(SystemTime::UNIX_EPOCH)).unwrap(),
    ]
    .concat();
    assert_eq!(entries.matches("expires = ").count(), 2, "{entries}");
    assert!(
        !entries.contains("\"one\"") && !entries.contains("\"two\""),
        "{entries}"
    );
    let (_folder, path) = file(&entries);
    let tokens = Tokens::load(&path).unwrap();
    assert_eq!(principal(&tokens, "one"), Some(crawler));
    assert_eq!(principal(&tokens, "two"), None);
}

/// AU3: nor does one that is half written open more.
#[test]
fn an_entry_that_is_cut_short_opens_nothing() {
    let crawler = Principal {
        name: "crawler".into(),
        role: Role::Write,
        corpora: Some(Arc::new(BTreeSet::from(["news".to_owned()]))),
        limits: Limits::default(),
    };
    let later = SystemTime::now() + std::time::Duration::from_secs(3600);
    let entry = token_entry(&crawler, b"one", Some(later)).unwrap();
    for length in 0..entry.trim_end().len() {
        let (_folder, path) = file(&entry[..length]);
        if let Ok(tokens) = Tokens::load(&path) {
            let opened = principal(&tokens, "one");
            assert!(opened.is_none(), "{}", &entry[..length]);
        }
    }
}

/// AU4.
#[test]
fn a_file_that_changes_is_read_again_and_a_bad_one_changes_nothing() {
    let (_folder, path) = file(&entry("crawler", "one", "role = \"read\""));
    let tokens = Tokens::load(&path).unwrap();
    assert!(!tokens.files().look().unwrap());
    for useless in ["[[tokens]]\nname = \"half", ""] {
        fs::write(&path, useless).unwrap();
        look_twice(&tokens).unwrap_err();
        assert!(name_of(&tokens, "one").is_some());
    }
    fs::write(&path, entry("crawler", "two", "role = \"read\"")).unwrap();
    assert!(look_twice(&tokens).unwrap());
    assert_eq!(name_of(&tokens, "one"), None);
    assert_eq!(name_of(&tokens, "two").as_deref(), Some("crawler"));
}

#[test]
fn an_entry_that_is_wrong_is_named() {
    let good = entry("crawler", "one", "role = \"read\"");
    for (entries, said) in [
        (entry("", "one", "role = \"read\""), "needs a name"),
        (
            format!("{good}{good}"),
            "\"crawler\" needs a name of its own",
        ),
        (
            format!("{good}{}", entry("c", "one", "role = \"read\"")),
            "of another one",
        ),
        (entry("c", "", "role = \"read\""), "that of nothing"),
        (String::new(), "has no token"),
        (entry("c", "one", "role = \"owner\""), "line 4"),
        (entry("c", "one", "role = \"read\"\nrights = 1"), "line 5"),
        (
            entry("c", "one", "role = \"read\"\nexpires = \"tomorrow\""),
            "has an `expires`",
        ),
        (
            entry("c", "one", "role = \"read\"\ncorpora = []"),
            "is for no corpus",
        ),
        (
            entry("c", "one", "role = \"read\"\nin_flight_mib = 0"),
            "has a limit of 0",
        ),
        (
            "[[tokens]]\nname = \"c\"\nsha256 = \"12\"\nrole = \"read\"".to_owned(),
            "has no `sha256`",
        ),
        (good.replace(&hex("one")[..2], "é"), "has no `sha256`"),
    ] {
        let (_folder, path) = file(&entries);
        let error = Tokens::load(&path).unwrap_err().to_string();
        assert!(
            error.contains(said) && error.contains("tokens.toml"),
            "{error}"
        );
    }
    let missing = Tokens::load(Path::new("/nowhere/tokens.toml")).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/tokens.toml"));
}

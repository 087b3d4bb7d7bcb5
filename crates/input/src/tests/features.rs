//! Features: hashes with weights.

use simshard_simhash::{Recipe, compute};

use super::*;

fn features_args() -> InputOptions {
    InputOptions {
        features_field: Some("f".to_owned()),
        ..args(Format::Jsonl, &[])
    }
}

fn fingerprint(written: &str) -> Result<u64, String> {
    let line = format!("{{\"id\":\"a\",\"f\":{written}}}");
    let input = open_bytes(&features_args(), line.as_bytes()).map_err(|error| error.to_string())?;
    match &all(input)[0].content {
        Content::Fingerprint(fingerprint) => Ok(fingerprint.0),
        Content::Text(text) => panic!("{text}"),
    }
}

#[test]
fn every_way_to_write_features_gives_their_fingerprint() {
    let expected = compute([5, 5, 9, u64::MAX]).0;
    for written in [
        r#"{"5":2,"9":1,"18446744073709551615":1}"#,
        r#"[[5,2],[9,1],[18446744073709551615,1]]"#,
        r#"[["5",2],9,"18446744073709551615"]"#,
        r#"[5, 9, 5, "18446744073709551615"]"#,
        r#"[[5,1],[5,1],9,18446744073709551615,[7,0]]"#,
    ] {
        assert_eq!(fingerprint(written), Ok(expected), "{written}");
    }
    assert_eq!(fingerprint("{}"), Ok(0));
    assert_eq!(fingerprint("[]"), Ok(0));
    assert_eq!(fingerprint("[[3,18446744073709551615]]"), Ok(3));
}

#[test]
fn what_is_no_features_is_named() {
    for written in [
        "null",
        "7",
        "\"7\"",
        "[null]",
        "[[5]]",
        "[[5,1,1]]",
        "[[[5],1]]",
        "[[5,1.5]]",
        "[[5,\"1\"]]",
        "[[5,-1]]",
        "[-5]",
        "[1.0]",
        "[\"0x5\"]",
        "[18446744073709551616]",
        r#"{"x":1}"#,
        r#"{"5":null}"#,
        r#"{"5":1,"05":1}"#,
        r#"{"5":-1}"#,
    ] {
        let message = fingerprint(written).unwrap_err();
        let expected = format!("<stdin>:1: the field \"f\" is {written}: expected an object");
        assert!(message.starts_with(&expected), "{message}");
    }
    assert_eq!(
        fingerprint("[[1,18446744073709551615],2]"),
        Err("<stdin>:1: the field \"f\" has weights of 2^64 or more in all".to_owned())
    );
}

#[test]
fn features_are_the_default_where_the_command_says_so() {
    let needs = Needs {
        recipe: Recipe::Features,
        ..Needs::CLIENT
    };
    let read = |args: &InputOptions, line: &str| {
        crate::parse_bytes(args, needs, line.into()).map_err(|error| error.to_string())
    };
    let args = args(Format::Jsonl, &[]);
    let expected = Ok(vec![print("1", 5)]);
    assert_eq!(
        read(&args, r#"{"id":1,"features":[5],"text":"x"}"#),
        expected
    );
    let named = InputOptions {
        text_fields: vec!["text".to_owned()],
        ..args
    };
    assert_eq!(
        read(&named, r#"{"id":1,"features":[5],"text":"x"}"#),
        Ok(vec![text("1", "x")])
    );
}

//! The `tsv` format.

use super::*;

/// What is said of lines that may be rows of a table.
const TABLE: &str = "; a table with a header and tabs is read with --format csv --separator tab";

#[test]
fn a_line_is_an_id_and_a_fingerprint() {
    assert_eq!(
        read(Format::Tsv, "a\t0\r\n\t18446744073709551615\nb c\t007"),
        [print("a", 0), print("", u64::MAX), print("b c", 7)]
    );
}

#[test]
fn a_first_line_whose_second_column_is_a_word_is_the_header() {
    for header in ["id\thash", "id\t hash", "\tfingerprint", "a\tx12"] {
        assert_eq!(
            read(Format::Tsv, format!("{header}\na\t1\n")),
            [print("a", 1)]
        );
    }
    assert_eq!(read(Format::Tsv, "\u{FEFF}id\thash\r\n"), []);
}

#[test]
fn every_file_may_have_a_header_and_only_its_first_line() {
    let folder = Folder::new();
    let a = folder.write("a.tsv", "id\thash\na\t1\n");
    let b = folder.write("b.tsv", "id\thash\nb\t2\n");
    let input = open_bytes(&args(Format::Tsv, &[a, b]), b"").unwrap();
    assert_eq!(all(input), [print("a", 1), print("b", 2)]);
    assert_eq!(
        refusal(Format::Tsv, "a\t1\nid\thash\n"),
        "<stdin>:2: \"hash\" is no fingerprint: a fingerprint is a decimal number of digits only; a table \
         with a header and tabs is read with --format csv --separator tab"
    );
}

#[test]
fn what_was_meant_as_a_number_is_never_a_header() {
    let digits_only = "a fingerprint is a decimal number of digits only";
    let cases = [
        ("12abc", digits_only),
        (
            "-1",
            "one is a number of 0 or more, unless --signed says that they are in two's complement",
        ),
        ("+1", digits_only),
        (".5", digits_only),
        (" 12", digits_only),
        ("1e3", digits_only),
        ("0x10", digits_only),
        ("", "a fingerprint is a decimal number, found nothing"),
        ("  ", "a fingerprint is a decimal number, found nothing"),
        (
            "18446744073709551616",
            "a fingerprint is at most 18446744073709551615 (2^64-1)",
        ),
    ];
    for (value, reason) in cases {
        for (lead, line) in [("", 1), ("a\t1\n", 2)] {
            assert_eq!(
                refusal(Format::Tsv, format!("{lead}b\t{value}\nc\t3\n")),
                format!("<stdin>:{line}: \"{value}\" is no fingerprint: {reason}")
            );
        }
    }
}

#[test]
fn any_other_number_of_columns_is_an_error_even_on_the_first_line() {
    for (line, found) in [("", 1), ("id", 1), ("id\thash\tcluster", 3), ("a\t1\t", 3)] {
        let message = refusal(Format::Tsv, format!("{line}\na\t1\n"));
        let expected = format!("expected two columns, id<TAB>fingerprint, found {found}");
        assert!(message.starts_with("<stdin>:1: "), "{message}");
        let problem = message.strip_suffix(TABLE);
        assert_eq!(problem.is_some(), found > 2, "{message}");
        let problem = problem.unwrap_or(&message);
        assert!(problem.ends_with(&expected), "{message}");
    }
}

#[test]
fn a_blank_line_is_an_error() {
    let message = refusal(Format::Tsv, "a\t1\n\n");
    assert!(
        message.starts_with("<stdin>:2: \"\": expected two"),
        "{message}"
    );
}

#[test]
fn bad_lines_are_skipped_on_request() {
    let stdin = b"id\thash\na\t1\nb\t12abc\nc\nd\t4\n";
    let (read, documents) = drain(open_bytes(&skipping(Format::Tsv, &[]), stdin).unwrap());
    assert_eq!(read, [print("a", 1), print("d", 4)]);
    assert_eq!(documents.skipped().bad_lines, 2);
}

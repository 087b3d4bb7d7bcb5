//! `simshard ready`.

use simshard_testkit::run;

use crate::BINARY;

#[test]
fn where_nothing_answers_nothing_is_ready() {
    // Only root can listen at this port.
    let address = "127.0.0.1:1";
    let output = run(BINARY, ["ready", "--http", address], "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with(&format!("error: no side port answers at {address}: ")),
        "{said}"
    );
}

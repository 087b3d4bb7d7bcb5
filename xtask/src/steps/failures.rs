//! Which Rust tests failed, and why, from what the test runner prints of them.

/// Failed tests, each with the place and the message of its first panic.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    told: Vec<String>,
    next: Next,
}

/// What is looked for.
#[derive(Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    Test,
    Panic,
    Message,
}

impl Failures {
    /// Adds a line, such as `---- NAME stdout ----` or `thread 'NAME' (7) panicked at FILE:LINE:COLUMN:`.
    pub(super) fn add(&mut self, line: &str) {
        let rest = line.strip_prefix("---- ");
        if let Some(name) = rest.and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.told.push(name.to_owned());
            self.next = Next::Panic;
        } else if let Some(told) = self.told.last_mut() {
            let place = line.split_once(" panicked at ").map(|(_, place)| place);
            match (&self.next, place) {
                (Next::Panic, Some(place)) if line.starts_with("thread '") => {
                    *told += &format!(" at {place}");
                    self.next = Next::Message;
                }
                (Next::Message, _) if !line.trim().is_empty() => {
                    *told += &format!(" {}", line.trim());
                    self.next = Next::Test;
                }
                _ => {}
            }
        }
    }

    /// A line a test.
    pub(super) fn told(self) -> Vec<String> {
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_test_is_told_with_its_first_panic() {
        let printed = "
test a::b ... FAILED
test c ... FAILED

failures:

---- a::b stdout ----
process 7: thread 'main' panicked at elsewhere.rs:1:1:
thread 'tokio-rt-worker' (12) panicked at tests/a.rs:3:5:

  not within 2 s: it ends
thread 'a::b' (11) panicked at tests/a.rs:9:9:
the second

---- c stdout ----
Error: \"no panic\"

failures:
    a::b
    c
";
        let mut failures = Failures::default();
        printed.lines().for_each(|line| failures.add(line));
        let expected = ["a::b at tests/a.rs:3:5: not within 2 s: it ends", "c"];
        assert_eq!(failures.told(), expected);
    }
}

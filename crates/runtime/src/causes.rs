//! What errors say with their causes.

use std::error::Error;
use std::iter;

/// What an error says, with all its causes. Some say what their cause says.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    followed_by_causes(error.to_string(), error)
}

/// What is said of an error, followed by all its causes.
#[must_use]
pub fn followed_by_causes(said: String, error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |error| (*error).source());
    causes.fold(said, |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) {
            text
        } else {
            format!("{text}: {cause}")
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Says(&'static str, Option<Box<Says>>);

    impl fmt::Display for Says {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Says {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            let cause = self.1.as_deref();
            cause.map(|cause| cause as &(dyn Error + 'static))
        }
    }

    #[test]
    fn a_cause_that_says_the_same_is_said_once() {
        let refused = Says("connection refused", None);
        let tcp = Says("tcp connect error", Some(Box::new(refused)));
        let again = Says("tcp connect error", Some(Box::new(tcp)));
        let error = Says("transport error", Some(Box::new(again)));
        let expected = "transport error: tcp connect error: connection refused";
        assert_eq!(with_causes(&error), expected);
        let said = followed_by_causes("no answer".to_owned(), &error);
        assert_eq!(said, "no answer: tcp connect error: connection refused");
    }
}

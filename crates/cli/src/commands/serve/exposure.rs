//! Where a process may listen: on loopback, and elsewhere only with TLS and authentication of its callers.

use std::net::SocketAddr;

use crate::exit::UsageError;

/// The protection that a process lacks, as the flags to give.
pub(super) type Lack = Option<&'static str>;

/// What a router lacks.
pub(super) const fn of_router(has_tls: bool, knows_callers: bool) -> Lack {
    match (has_tls, knows_callers) {
        (true, true) => None,
        (true, false) => Some("--tokens or --tls-client-ca"),
        (false, true) => Some("--tls-cert and --tls-key"),
        (false, false) => Some("--tls-cert and --tls-key, and --tokens or --tls-client-ca"),
    }
}

/// What a node lacks.
pub(super) const fn of_node(has_certificates: bool) -> Lack {
    if has_certificates {
        None
    } else {
        Some("--cluster-cert, --cluster-key and --cluster-ca")
    }
}

/// Refuses to listen beyond loopback without protection.
///
/// # Errors
/// If it lacks some, and the operator has not allowed that.
pub(super) fn check(listen: SocketAddr, lack: Lack, allowed: bool) -> Result<(), UsageError> {
    let is_here = listen.ip().to_canonical().is_loopback();
    match lack {
        Some(lack) if !is_here && !allowed => Err(UsageError(format!(
            "{listen} is not loopback, and other machines may reach it: give {lack}, listen on 127.0.0.1, or give --insecure \
             in a trusted network"
        ))),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_needs_no_protection() {
        for here in [
            "127.0.0.1:1",
            "127.9.9.9:0",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            check(here.parse().unwrap(), Some("--tokens"), false).unwrap();
        }
        for elsewhere in [
            "0.0.0.0:1",
            "[::]:0",
            "10.0.0.1:7460",
            "[::ffff:10.0.0.1]:1",
            "[fe80::1]:1",
        ] {
            let elsewhere = elsewhere.parse().unwrap();
            let refused = check(elsewhere, Some("--tokens"), false).unwrap_err();
            let refused = refused.to_string();
            assert!(
                refused.contains("give --tokens, listen on 127.0.0.1, or give --insecure"),
                "{refused}"
            );
            check(elsewhere, Some("--tokens"), true).unwrap();
            check(elsewhere, None, false).unwrap();
        }
    }

    #[test]
    fn what_lacks_is_named() {
        assert_eq!(of_router(true, true), None);
        assert_eq!(of_node(true), None);
        assert!(of_router(true, false).unwrap().starts_with("--tokens"));
        assert_eq!(of_router(false, true).unwrap(), "--tls-cert and --tls-key");
        assert!(of_router(false, false).unwrap().contains("--tokens"));
        assert!(of_node(false).unwrap().starts_with("--cluster-cert"));
    }
}

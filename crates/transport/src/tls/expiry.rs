//! Until when certificates can be used.

use std::time::Duration;

use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

/// When the first certificate of a chain ends; none if no certificate tells.
pub(super) fn end_of_chain(chain: &[CertificateDer<'_>]) -> Option<UnixTime> {
    chain
        .iter()
        .filter_map(end_of)
        .min_by_key(UnixTime::as_secs)
}

/// The check of a certificate names its end, if it comes too late.
fn end_of(certificate: &CertificateDer<'_>) -> Option<UnixTime> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let late = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let usage = KeyUsage::server_auth();
    let checked = certificate.verify_for_usage(&[], &[], &[], late, usage, None, None);
    let Error::CertExpired { not_after, .. } = checked.err()? else {
        return None;
    };
    Some(not_after)
}

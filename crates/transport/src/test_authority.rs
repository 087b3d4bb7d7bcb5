//! Authorities and certificates that are made for one test.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};

use crate::tls::{Tls, TlsFiles};

/// An authority, and what it signs.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { pem, issuer }
    }

    /// A certificate of a host, and its key.
    pub(crate) fn signs(&self) -> [String; 2] {
        self.signs_with(|_| ())
    }

    /// Those of the owner that a URI names.
    pub(crate) fn signs_for(&self, uri: &str) -> [String; 2] {
        self.signs_with(|params| {
            let uri = SanType::URI(uri.try_into().unwrap());
            params.subject_alt_names.push(uri);
        })
    }

    /// The same, an hour too late.
    pub(crate) fn signed_once(&self, uri: &str) -> [String; 2] {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        self.signs_until(uri, now.as_secs() - 3600)
    }

    /// The same, until some second since 1970.
    pub(crate) fn signs_until(&self, uri: &str, second: u64) -> [String; 2] {
        self.signs_with(|params| {
            let uri = SanType::URI(uri.try_into().unwrap());
            params.subject_alt_names.push(uri);
            params.not_after = (UNIX_EPOCH + Duration::from_secs(second)).into();
        })
    }

    fn signs_with(&self, change: impl FnOnce(&mut CertificateParams)) -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        [certificate.pem(), key.serialize_pem()]
    }
}

/// The files of a process, and those of the authority that it trusts.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new(pair: &[String; 2], trusted: &Authority) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write_pair(pair);
        fs::write(folder.path("peers.pem"), &trusted.pem).unwrap();
        folder
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    pub(crate) fn write_pair(&self, [certificate, key]: &[String; 2]) {
        fs::write(self.path("own.pem"), certificate).unwrap();
        fs::write(self.path("own.key"), key).unwrap();
    }

    pub(crate) fn files(&self, authorities: Option<&str>) -> TlsFiles {
        TlsFiles {
            certificate: self.path("own.pem"),
            key: self.path("own.key"),
            client_authorities: authorities.map(|file| self.path(file)),
        }
    }

    /// What asks peers for certificates.
    pub(crate) fn mutual(&self) -> Tls {
        Tls::load(self.files(Some("peers.pem"))).unwrap()
    }
}

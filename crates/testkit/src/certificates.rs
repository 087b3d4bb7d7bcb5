//! Certificates for a server and its clients, made for one test.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// PEM files of an authority, and of a server and a client whose certificates it signed.
#[derive(Debug)]
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// Those of an authority of their own. The server has this address.
    #[must_use]
    pub fn of_server(address: IpAddr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::write(folder.path(), address);
        Self { folder }
    }

    /// Writes such files into a folder: `ca.pem`, and `server.pem`, `server.key`, `client.pem` and `client.key`.
    pub fn write(folder: &Path, address: IpAddr) {
        let mut authority = params("authority", Vec::new());
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = authority.self_signed(&key).expect("a certificate");
        write(folder, "ca.pem", &certificate.pem());
        let issuer = Issuer::new(authority, key);
        for name in ["server", "client"] {
            let key = KeyPair::generate().expect("a key");
            let signed = params(name, vec![address.to_string()]).signed_by(&key, &issuer);
            let certificate = signed.expect("a certificate");
            write(folder, &format!("{name}.pem"), &certificate.pem());
            write(folder, &format!("{name}.key"), &key.serialize_pem());
        }
    }

    /// The certificate of the authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The certificate of the client, and its key.
    #[must_use]
    pub fn client(&self) -> [PathBuf; 2] {
        ["client.pem", "client.key"].map(|file| self.folder.path().join(file))
    }

    /// The certificate of the server, and its key.
    pub(crate) fn server(&self) -> [PathBuf; 2] {
        ["server.pem", "server.key"].map(|file| self.folder.path().join(file))
    }
}

/// Those of a certificate of its own name: OpenSSL takes one with the name of its authority for signed by itself.
fn params(name: &str, addresses: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(addresses).expect("addresses");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn write(folder: &Path, file: &str, text: &str) {
    fs::write(folder.join(file), text).expect("a file");
}

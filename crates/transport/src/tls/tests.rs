//! Certificates that are made here, and clients that shake hands by them.

use std::sync::LazyLock;

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::rustls::version::TLS12;

use super::*;
use crate::followed::{self, LOOK};
use crate::test_authority::{Authority, Folder};

/// The one that all tests trust.
static TRUSTED: LazyLock<Authority> = LazyLock::new(Authority::new);

fn folder() -> Folder {
    Folder::new(&TRUSTED.signs(), &TRUSTED)
}

/// A client that trusts the authority, and may have a certificate.
fn client(identity: Option<[String; 2]>) -> TlsConnector {
    client_of(&TLS13, identity)
}

fn client_of(
    version: &'static rustls::SupportedProtocolVersion,
    identity: Option<[String; 2]>,
) -> TlsConnector {
    let trusted = authorities(Path::new("trusted"), TRUSTED.pem.as_bytes()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(trusted);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some([certificate, key]) => {
            let chain = certificates(Path::new("client"), certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    TlsConnector::from(Arc::new(config))
}

/// What a client hears that says a word; the server says it back. With it comes the server's certificate.
async fn echo(tls: &Tls, client: TlsConnector) -> std::io::Result<CertificateDer<'static>> {
    let (near, far) = duplex(1 << 16);
    let accepted = tls.acceptor().accept(far);
    let serve = async {
        let mut stream = accepted.await?;
        let mut word = [0; 5];
        stream.read_exact(&mut word).await?;
        stream.write_all(&word).await?;
        stream.flush().await
    };
    let ask = async {
        let mut stream = client
            .connect("localhost".try_into().unwrap(), near)
            .await?;
        stream.write_all(b"hello").await?;
        let mut word = [0; 5];
        stream.read_exact(&mut word).await?;
        assert_eq!(&word, b"hello");
        let (_, connection) = stream.get_ref();
        Ok(connection.peer_certificates().unwrap()[0].clone())
    };
    let (served, asked) = tokio::join!(serve, ask);
    asked.and_then(|certificate| served.map(|()| certificate))
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_is_served() {
    let tls = Tls::load(folder().files(None)).unwrap();
    echo(&tls, client(None)).await.unwrap();
    let [certificate, key] = Authority::new().signs();
    let folder = folder();
    folder.write_pair(&[certificate, key]);
    let tls = Tls::load(folder.files(None)).unwrap();
    let refused = echo(&tls, client(None)).await.unwrap_err().to_string();
    assert!(refused.contains("certificate"), "{refused}");
}

/// TL3.
#[tokio::test]
async fn an_older_version_is_not_spoken() {
    let tls = Tls::load(folder().files(None)).unwrap();
    echo(&tls, client_of(&TLS12, None)).await.unwrap_err();
}

/// TL3.
#[tokio::test]
async fn a_client_needs_a_certificate_of_the_authorities_that_are_named() {
    let tls = Tls::load(folder().files(Some("peers.pem"))).unwrap();
    echo(&tls, client(Some(TRUSTED.signs()))).await.unwrap();
    echo(&tls, client(None)).await.unwrap_err();
    let stranger = Authority::new().signs();
    echo(&tls, client(Some(stranger))).await.unwrap_err();
}

/// TL2.
#[tokio::test]
async fn certificates_are_replaced_while_they_are_served() {
    let folder = folder();
    let tls = Tls::load(folder.files(None)).unwrap();
    let first = echo(&tls, client(None)).await.unwrap();
    assert!(!tls.files().look().unwrap(), "nothing has changed");
    let [certificate, key] = TRUSTED.signs();
    fs::write(folder.path("own.pem"), &certificate).unwrap();
    assert!(!tls.files().look().unwrap(), "it may be half written");
    let half_replaced = tls.files().look().unwrap_err();
    assert!(
        matches!(half_replaced, TlsError::Pair { .. }),
        "{half_replaced}"
    );
    assert_eq!(echo(&tls, client(None)).await.unwrap(), first);
    fs::write(folder.path("own.key"), &key).unwrap();
    assert!(!tls.files().look().unwrap());
    assert!(tls.files().look().unwrap());
    assert_ne!(echo(&tls, client(None)).await.unwrap(), first);
}

/// TL2.
#[tokio::test(start_paused = true)]
async fn files_are_looked_at_again_and_again() {
    let folder = folder();
    let tls = Tls::load(folder.files(None)).unwrap();
    let first = echo(&tls, client(None)).await.unwrap();
    let clone = tls.clone();
    let follower =
        tokio::spawn(async move { match followed::follow(Some(clone.files())).await {} });
    folder.write_pair(&TRUSTED.signs());
    tokio::time::sleep(4 * LOOK).await;
    assert_ne!(echo(&tls, client(None)).await.unwrap(), first);
    follower.abort();
}

#[test]
fn files_that_are_of_no_use_are_named() {
    let folder = folder();
    let refused = |files: TlsFiles| Tls::load(files).unwrap_err().to_string();
    let mut files = folder.files(None);
    files.key = folder.path("nothing.key");
    assert!(refused(files).contains("cannot read"));
    let mut files = folder.files(None);
    files.key = folder.path("own.pem");
    let said = refused(files);
    assert!(said.contains("holds no private key"), "{said}");
    let mut files = folder.files(None);
    files.certificate = folder.path("own.key");
    let said = refused(files);
    assert!(said.contains("holds no certificate"), "{said}");
    fs::write(folder.path("torn.pem"), "-----BEGIN CERTIFICATE-----\n%%%").unwrap();
    let said = refused(folder.files(Some("torn.pem")));
    assert!(said.contains("torn.pem"), "{said}");
}

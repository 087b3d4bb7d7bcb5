//! A router with TLS: who is answered, and who is not.

use std::net::{IpAddr, Ipv4Addr, TcpStream};

use simshard_client::{Access, Client, ClientError, Documents, Fingerprint, Queries, SearchSpec};
use simshard_testkit::{Certificates, TestCluster};

/// Connections that never begin a handshake.
const SILENT: usize = 200;

/// Certificates of an authority of its own, for a router on loopback.
fn certificates() -> Certificates {
    Certificates::of_server(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// What a client trusts, and how it is known.
fn access(certificates: &Certificates, is_known: bool) -> Access {
    let read = |path| std::fs::read_to_string(path).unwrap();
    let [certificate, key] = certificates.client().map(read);
    Access {
        authorities: Some(read(certificates.authority())),
        identity: is_known.then_some((certificate, key)),
        token: None,
    }
}

async fn corpora(url: &str, access: &Access) -> Result<usize, ClientError> {
    let client = Client::with_access(url, access)?;
    client.list_corpora().await.map(|corpora| corpora.len())
}

fn assert_unanswered(refused: Result<usize, ClientError>) -> String {
    let error = refused.unwrap_err();
    assert!(matches!(error, ClientError::NoRouter { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_found_by_tls_as_without() {
    let certificates = certificates();
    let cluster = TestCluster::secured(&certificates, false).await;
    cluster.create_corpus("c", 5, 3).await;
    let documents = Documents {
        keys: Queries::Fingerprints(vec![Fingerprint(7)]),
        ids: vec!["seven".to_owned()],
    };
    cluster.client.insert("c", documents).await.unwrap();
    let queries = Queries::Fingerprints(vec![Fingerprint(6)]);
    let found = cluster.client.find_all("c", queries, SearchSpec::default());
    let found = found.await.unwrap();
    assert_eq!(found.queries[0].matches[0].ids, ["seven"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_know_the_authority_or_speaks_no_tls_gets_no_answer() {
    let own = certificates();
    let cluster = TestCluster::secured(&own, false).await;
    let url = cluster.url();
    assert_eq!(corpora(&url, &access(&own, false)).await.unwrap(), 0);
    let stranger = access(&certificates(), false);
    for refused in [
        corpora(&url, &stranger).await,
        corpora(&url, &Access::default()).await,
    ] {
        let said = assert_unanswered(refused);
        assert!(said.contains("certificate"), "{said}");
    }
    let plain = url.replace("https", "http");
    assert_unanswered(corpora(&plain, &Access::default()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_clients_need_certificates_none_is_answered_without() {
    let own = certificates();
    let cluster = TestCluster::secured(&own, true).await;
    let url = cluster.url();
    assert_eq!(corpora(&url, &access(&own, true)).await.unwrap(), 0);
    let other = certificates();
    let stranger = Access {
        authorities: access(&own, false).authorities,
        ..access(&other, true)
    };
    for refused in [
        corpora(&url, &access(&own, false)).await,
        corpora(&url, &stranger).await,
    ] {
        assert_unanswered(refused);
    }
}

/// TL1.
#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_never_begins_keeps_nothing_from_others() {
    let own = certificates();
    let cluster = TestCluster::secured(&own, false).await;
    let url = cluster.url();
    let address = url.replace("https://", "");
    let connect = |_| TcpStream::connect(&address).unwrap();
    let _silent: Vec<TcpStream> = (0..SILENT).map(connect).collect();
    assert_eq!(corpora(&url, &access(&own, false)).await.unwrap(), 0);
}

//! What the store in etcd does where that asks for certificates, or for a user and a password.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{
    EtcdAccess, EtcdKeyValues, EtcdTls, EtcdUser, KeyValueError, KeyValueStore, Outcome,
    Transaction, follow,
};
use simshard_testkit::{Certificates, EtcdServer, until};
use tokio::time::timeout;

/// Longer than two attempts to connect take.
const SEVERAL_ATTEMPTS: Duration = Duration::from_secs(10);

const USER: &str = "news";

fn user(password: &str) -> EtcdAccess {
    EtcdAccess {
        user: Some(EtcdUser {
            name: USER.to_owned(),
            password: password.to_owned(),
        }),
        ..EtcdAccess::default()
    }
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

/// With the certificate of an authority, and with another one of a client.
fn tls(authority: &Certificates, client: Option<&Certificates>) -> EtcdAccess {
    let identity = client.map(|certificates| {
        let [certificate, key] = certificates.client();
        (text(&certificate), text(&key))
    });
    EtcdAccess {
        tls: Some(EtcdTls {
            authorities: text(&authority.authority()),
            identity,
        }),
        ..EtcdAccess::default()
    }
}

fn store(etcd: &EtcdServer, access: &EtcdAccess) -> EtcdKeyValues {
    EtcdKeyValues::with(&etcd.url(), access).unwrap()
}

async fn put(store: &EtcdKeyValues, value: &str) -> Result<Outcome, KeyValueError> {
    store.commit(&Transaction::new().put("key", value)).await
}

async fn value(store: &EtcdKeyValues) -> Result<Option<String>, KeyValueError> {
    let snapshot = store.read("key").await?;
    Ok(snapshot.pairs.into_iter().next().map(|pair| pair.value))
}

async fn serves(store: &EtcdKeyValues) -> bool {
    matches!(put(store, "1").await, Ok(Outcome::Committed(_)))
        && value(store).await == Ok(Some("1".to_owned()))
}

#[tokio::test]
async fn an_etcd_with_users_takes_the_one_that_knows_its_password() {
    let mut etcd = EtcdServer::start();
    let right = store(&etcd, &user("right-word"));
    assert!(serves(&right).await, "before it asks for users");
    etcd.ask_for_users(USER, "right-word");
    assert!(serves(&right).await, "once it does");
    assert!(serves(&store(&etcd, &user("right-word"))).await);
    for (access, said) in [
        (user("wrong-word"), "invalid user ID or password"),
        (EtcdAccess::default(), "user name is empty"),
    ] {
        let refused = store(&etcd, &access);
        for error in [
            put(&refused, "2").await.unwrap_err(),
            value(&refused).await.unwrap_err(),
        ] {
            let KeyValueError::Refused { reason, .. } = &error else {
                panic!("{error}");
            };
            assert!(reason.contains(said), "{reason}");
            assert!(!format!("{error} {refused:?}").contains("-word"));
        }
    }
    assert_eq!(value(&right).await, Ok(Some("1".to_owned())));
}

/// A token does not outlive the process of etcd, nor a change of its user.
#[tokio::test]
async fn a_token_that_etcd_has_forgotten_is_asked_for_anew() {
    let mut etcd = EtcdServer::start();
    etcd.ask_for_users(USER, "first-word");
    let first = store(&etcd, &user("first-word"));
    assert!(serves(&first).await);
    etcd.restart();
    assert_eq!(value(&first).await, Ok(Some("1".to_owned())));
    assert!(serves(&first).await);
    etcd.change_password(USER, "second-word");
    assert!(value(&first).await.is_err());
    assert!(serves(&store(&etcd, &user("second-word"))).await);
    etcd.change_password(USER, "first-word");
    assert!(serves(&first).await, "it goes on by itself");
}

#[tokio::test]
async fn a_follower_goes_on_with_another_token() {
    let mut etcd = EtcdServer::start();
    etcd.ask_for_users(USER, "right-word");
    let followed = Arc::new(store(&etcd, &user("right-word")));
    let keys: Arc<dyn KeyValueStore> = Arc::<EtcdKeyValues>::clone(&followed);
    let mut receiver = follow(keys, "key".to_owned(), |_| {}).await.unwrap();
    for number in 0..3 {
        let written = number.to_string();
        until("a change is made", async || {
            matches!(put(&followed, &written).await, Ok(Outcome::Committed(_)))
        })
        .await;
        let seen = receiver.wait_for(|now| now.pairs.iter().any(|pair| pair.value == written));
        assert!(timeout(SEVERAL_ATTEMPTS, seen).await.unwrap().is_ok());
        etcd.restart();
    }
}

/// A watch with a token that etcd does not know is refused in an answer, and by 3.4 as one that the user may not have.
#[tokio::test]
async fn a_watch_is_opened_anew_where_etcd_has_forgotten_the_token() {
    let mut etcd = EtcdServer::start();
    etcd.ask_for_users(USER, "right-word");
    let watching = store(&etcd, &user("right-word"));
    assert!(serves(&watching).await);
    let newest = watching.read("key").await.unwrap().revision;
    etcd.change_password(USER, "right-word");
    let mut changes = watching.changes("key");
    let refused = timeout(SEVERAL_ATTEMPTS, changes.next(newest)).await;
    assert!(
        matches!(refused, Ok(Err(KeyValueError::Refused { .. }))),
        "{refused:?}"
    );
    let waits = timeout(SEVERAL_ATTEMPTS, changes.next(newest));
    let (seen, made) = tokio::join!(waits, put(&watching, "2"));
    assert!(matches!(made, Ok(Outcome::Committed(_))), "{made:?}");
    assert!(seen.unwrap().is_ok());
}

#[tokio::test]
async fn an_etcd_with_certificates_takes_who_shows_one_of_its_authority() {
    let etcd = EtcdServer::start_with_tls();
    let certificates = etcd.certificates();
    assert!(serves(&store(&etcd, &tls(certificates, Some(certificates)))).await);
    let others = Certificates::of_server(etcd.address().ip());
    for (what, access) in [
        ("no TLS", EtcdAccess::default()),
        ("another authority", tls(&others, Some(certificates))),
        ("no certificate", tls(certificates, None)),
        (
            "a certificate of another authority",
            tls(certificates, Some(&others)),
        ),
    ] {
        let failed = value(&store(&etcd, &access)).await;
        assert!(
            matches!(failed, Err(KeyValueError::Unreachable { .. })),
            "{what}: {failed:?}"
        );
    }
}

#[tokio::test]
async fn certificates_and_passwords_go_together() {
    let mut etcd = EtcdServer::start_with_tls();
    etcd.ask_for_users(USER, "right-word");
    let certificates = etcd.certificates();
    let access = EtcdAccess {
        user: user("right-word").user,
        ..tls(certificates, Some(certificates))
    };
    let both = store(&etcd, &access);
    assert!(serves(&both).await);
    // The system takes connections for a frozen process, and nothing answers the handshake.
    etcd.freeze();
    let fresh = store(&etcd, &access);
    let late = timeout(SEVERAL_ATTEMPTS, value(&fresh)).await;
    assert!(
        matches!(late, Ok(Err(KeyValueError::Unreachable { .. }))),
        "{late:?}"
    );
    etcd.thaw();
    assert!(serves(&fresh).await);
}

#[test]
fn files_that_are_no_certificates_are_refused() {
    let access = EtcdAccess {
        tls: Some(EtcdTls {
            authorities: "no certificate".to_owned(),
            identity: None,
        }),
        ..EtcdAccess::default()
    };
    let refused = EtcdKeyValues::with("etcd://127.0.0.1:1", &access).unwrap_err();
    assert!(
        matches!(refused, KeyValueError::BadCertificates { .. }),
        "{refused}"
    );
}

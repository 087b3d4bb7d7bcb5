//! Which caller gets to which method.

use std::fs;

use prost_reflect::DescriptorPool;
use sha2::{Digest, Sha256};
use simshard_proto::{ROUTER_DESCRIPTORS, SHARD_SERVICE_DESCRIPTORS};
use tower::{ServiceExt, service_fn};

use super::rules::{ADMIN_SERVICE, CORPUS_SERVICE, HEALTH, RULES, SHARD_SERVICE, Who, rule_for};
use super::*;
use crate::tokens::Role;

/// Tokens that are called like their roles, and one that has expired.
fn tokens() -> Tokens {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let entry = |token: &str, role: &str, more: &str| {
        let digest: String = Sha256::digest(token)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("[[tokens]]\nname = {token:?}\nrole = {role:?}\nsha256 = {digest:?}\n{more}\n")
    };
    let of_role = |role| entry(role, role, "");
    let mut entries = ["read", "write", "admin"].map(of_role).concat();
    entries += &entry("some", "admin", "corpora = [\"news\"]");
    entries += &entry("late", "admin", "expires = \"2020-01-01T00:00:00Z\"");
    fs::write(&path, entries).unwrap();
    Tokens::load(&path).unwrap()
}

/// The reason for which a request is refused, if it is, and the owner of the token that a handler sees.
async fn ask(path: &str, authorization: &[&str]) -> Result<Option<Principal>, Option<Reason>> {
    let mut request = Request::post(path);
    for value in authorization {
        request = request.header(AUTHORIZATION, *value);
    }
    let seen = service_fn(|request: Request<Body>| async move {
        assert!(!request.headers().contains_key(AUTHORIZATION));
        let mut response = Response::new(Body::empty());
        let caller: &Caller = request.extensions().get().unwrap();
        response.extensions_mut().insert(caller.check().unwrap());
        Ok::<_, Infallible>(response)
    });
    let service = Authorize::new(seen, Some(KnownBy::Tokens(tokens())));
    let response = service
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    match Status::from_header_map(response.headers()) {
        Some(status) => Err(Reason::of(&status)),
        None => Ok(response
            .extensions()
            .get::<Option<Principal>>()
            .cloned()
            .flatten()),
    }
}

/// All methods of a router but those of health.
fn methods() -> Vec<(String, String)> {
    methods_of(ROUTER_DESCRIPTORS)
}

fn methods_of(descriptors: &[u8]) -> Vec<(String, String)> {
    let pool = DescriptorPool::decode(descriptors).unwrap();
    let services = pool
        .services()
        .filter(|service| service.full_name() != HEALTH);
    let methods = services.flat_map(|service| {
        let methods = service.methods().map(|method| method.name().to_owned());
        let of = service.full_name().to_owned();
        methods
            .map(move |method| (of.clone(), method))
            .collect::<Vec<_>>()
    });
    methods.collect()
}

/// AU1: one that is new gets a rule.
#[test]
fn each_method_of_the_interface_has_a_rule() {
    let mut methods = methods();
    methods.extend(methods_of(SHARD_SERVICE_DESCRIPTORS));
    methods.sort_unstable();
    methods.dedup();
    for (service, method) in &methods {
        assert!(rule_for(service, method).is_some(), "{service}/{method}");
    }
    let of_simshard = RULES
        .iter()
        .filter(|(service, ..)| service.starts_with("simshard"));
    let rules: usize = of_simshard.map(|(.., methods)| methods.len()).sum();
    let own = methods
        .iter()
        .filter(|(service, _)| service.starts_with("simshard"));
    assert_eq!(rules, own.count());
}

/// What a method's name says of it, whatever the rules are.
fn expected(service: &str, method: &str) -> Need {
    let begins = |verbs: &[&str]| verbs.iter().any(|verb| method.starts_with(verb));
    let concerns_all = method == "ListStoredCorpora" || method == "RecoverCorpus";
    let role = if concerns_all {
        Role::Admin
    } else if begins(&[
        "Get",
        "List",
        "Find",
        "Scan",
        "Fingerprint",
        "ServerReflection",
    ]) {
        Role::Read
    } else if begins(&["Insert", "RemoveStream"]) || method == "Remove" {
        Role::Write
    } else {
        Role::Admin
    };
    let scope = if service == ADMIN_SERVICE || concerns_all {
        Scope::All
    } else {
        Scope::Named
    };
    let who = Who::Clients(role);
    Need { who, scope }
}

/// AU1: each method by each caller.
#[tokio::test]
async fn a_role_opens_the_methods_that_it_is_enough_for() {
    let roles = [
        ("read", Role::Read),
        ("write", Role::Write),
        ("admin", Role::Admin),
    ];
    for (service, method) in methods() {
        let path = format!("/{service}/{method}");
        let needed = expected(&service, &method).who;
        for (token, role) in roles {
            let asked = ask(&path, &[&format!("Bearer {token}")]).await;
            if !needed.has(Party::Client(role)) {
                assert_eq!(asked, Err(Some(Reason::PermissionDenied)), "{token} {path}");
            } else {
                let name = asked.unwrap().unwrap().name;
                assert_eq!(&*name, token, "{path}");
            }
        }
        for unknown in [&[][..], &["Bearer late"], &["Bearer of-none"], &["Bearer "]] {
            let asked = ask(&path, unknown).await;
            assert_eq!(
                asked,
                Err(Some(Reason::Unauthenticated)),
                "{unknown:?} {path}"
            );
        }
    }
}

/// AU3.
#[tokio::test]
async fn a_token_for_some_corpora_opens_nothing_that_concerns_all() {
    for (service, method) in methods() {
        let asked = ask(&format!("/{service}/{method}"), &["Bearer some"]).await;
        if expected(&service, &method).scope == Scope::Named {
            asked.unwrap();
        } else {
            assert_eq!(
                asked,
                Err(Some(Reason::PermissionDenied)),
                "{service}/{method}"
            );
        }
    }
    let asked = ask("/simshard.v1.CorpusService/Forget", &["Bearer some"]).await;
    assert_eq!(asked, Err(Some(Reason::PermissionDenied)));
}

#[tokio::test]
async fn other_forms_of_the_header_are_read_as_they_are_meant_or_refused() {
    let path = format!("/{CORPUS_SERVICE}/FindAll");
    for fine in ["Bearer read", "bearer read", "BEARER  read "] {
        ask(&path, &[fine]).await.unwrap();
    }
    for refused in [
        &["read"][..],
        &["Basic read"],
        &["Bearerread"],
        &["Bearer read", "Bearer read"],
        &["Bearer read,Bearer admin"],
        &["Bearer"],
        &["Bearer   "],
    ] {
        let asked = ask(&path, refused).await;
        assert_eq!(asked, Err(Some(Reason::Unauthenticated)), "{refused:?}");
    }
}

/// AU1.
#[tokio::test]
async fn health_is_open_and_what_no_rule_names_is_for_administrators() {
    assert_eq!(ask(&format!("/{HEALTH}/Check"), &[]).await, Ok(None));
    for path in [
        "/",
        "/x",
        "/simshard.v1.CorpusService/Forget",
        "/other/FindAll",
        "/grpc.health.v1.Healthy/Check",
    ] {
        assert_eq!(
            ask(path, &[]).await,
            Err(Some(Reason::Unauthenticated)),
            "{path}"
        );
        let asked = ask(path, &["Bearer write"]).await;
        assert_eq!(asked, Err(Some(Reason::PermissionDenied)), "{path}");
        ask(path, &["Bearer admin"]).await.unwrap();
    }
}

fn certified(party: Party) -> Owner {
    Owner { party, name: None }
}

/// All that a certificate can say.
const PARTIES: [Party; 5] = [
    Party::Client(Role::Read),
    Party::Client(Role::Write),
    Party::Client(Role::Admin),
    Party::Router,
    Party::Node,
];

/// AU5: each method of a router by each certificate.
#[test]
fn a_certificate_opens_the_methods_of_clients_that_its_role_is_enough_for() {
    for (service, method) in methods() {
        let need = need_of(&format!("/{service}/{method}")).unwrap();
        assert_eq!(need, expected(&service, &method), "{method}");
        for party in PARTIES {
            let is_enough = match (party, need.who) {
                (Party::Client(role), Who::Clients(least)) => least <= role,
                (Party::Router | Party::Node, _) | (_, Who::Parties(_)) => false,
            };
            let opened = by_certificate(Some(&certified(party)), need);
            assert_eq!(opened.is_ok(), is_enough, "{method} for {party:?}");
            let role = opened.ok().flatten().map(|principal| principal.role);
            assert_eq!(role.map(Party::Client), is_enough.then_some(party));
        }
        let none = by_certificate(None, need).unwrap_err();
        assert_eq!(Reason::of(&none), Some(Reason::PermissionDenied));
    }
}

/// AU5: each method of a node by each certificate.
#[test]
fn nodes_are_asked_by_routers_other_nodes_and_operators_each_for_its_own() {
    for (service, method) in methods_of(SHARD_SERVICE_DESCRIPTORS) {
        if service != SHARD_SERVICE {
            continue;
        }
        let need = need_of(&format!("/{service}/{method}")).unwrap();
        let admin = Party::Client(Role::Admin);
        let expected: &[Party] = match method.as_str() {
            "Ping" => &[admin, Party::Router, Party::Node],
            "Work" => &[Party::Router, Party::Node],
            "ListRecords" | "TellRecords" | "CopyShard" => &[Party::Node],
            "ScrubShard" | "SumCells" | "SettleShards" => &[admin],
            _ => &[Party::Router],
        };
        let opened = PARTIES.into_iter();
        let opened = opened.filter(|party| by_certificate(Some(&certified(*party)), need).is_ok());
        assert_eq!(Vec::from_iter(opened), expected, "{method}");
        by_certificate(None, need).unwrap_err();
    }
}

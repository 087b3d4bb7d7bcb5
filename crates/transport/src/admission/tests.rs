//! Requests through an admission to a service that says when it is done.

use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use tokio::sync::Notify;
use tower::ServiceExt;
use tower::service_fn;

use super::*;

/// What one peer gets of the places if it is alone.
const SHARE: usize = MAX_REQUESTS / 2;

fn request(path: &str, bytes: usize) -> Request<Body> {
    let body = Full::new(Bytes::from(vec![7; bytes]));
    Request::builder().uri(path).body(Body::new(body)).unwrap()
}

/// Reads a request to its end, and answers with as many bytes; or with the error that it met.
async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(match request.into_body().collect().await {
        Ok(body) => Response::new(Body::new(Full::new(body.to_bytes()))),
        Err(status) => status.into_http(),
    })
}

fn reason(response: &Response<Body>) -> Option<Reason> {
    Status::from_header_map(response.headers()).and_then(|status| Reason::of(&status))
}

/// AD1.
#[tokio::test]
async fn bytes_count_until_the_answer_has_left() {
    let budget = Budget::new(100);
    let service = Admission::new(budget.clone(), None).layer(service_fn(echo));
    let ask = |bytes| service.clone().oneshot(request("/a", bytes));

    let mut response = ask(40).await.unwrap();
    assert!(budget.try_take(61).is_none(), "the request counts");
    let frame = response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.data_ref().unwrap().len(), 40);
    assert!(budget.try_take(21).is_none(), "so does the answer");
    assert!(budget.try_take(20).is_some());
    drop(response);
    assert!(budget.try_take(100).is_some(), "nothing stays");
}

/// AD2.
#[tokio::test]
async fn a_request_that_does_not_fit_is_told_to_come_again() {
    let budget = Budget::new(100);
    let service = Admission::new(budget.clone(), None).layer(service_fn(echo));
    let ask = |path, bytes| service.clone().oneshot(request(path, bytes));
    let refused = ask("/a", 101).await.unwrap();
    assert_eq!(reason(&refused), Some(Reason::Overloaded));
    drop(refused);
    assert_eq!(reason(&ask("/a", 50).await.unwrap()), None);

    let _much = budget.take(200);
    let refused = ask("/a", 1).await.unwrap();
    assert_eq!(reason(&refused), Some(Reason::Overloaded));
    let health = ask("/grpc.health.v1.Health/Check", 1).await.unwrap();
    assert_eq!(reason(&health), None);
}

/// AD1: its handler refuses what does not fit.
#[tokio::test]
async fn a_stream_that_admits_itself_gets_all_that_arrives_and_it_counts() {
    let budget = Budget::new(100);
    let service = Admission::new(budget.clone(), Some("/s/Work")).layer(service_fn(echo));
    let ask = |path| service.clone().oneshot(request(path, 101));
    let response = ask("/s/Work").await.unwrap();
    assert_eq!(reason(&response), None);
    assert!(budget.try_take(1).is_none(), "it counts");
    drop(response);
    let refused = ask("/other/Work").await.unwrap();
    assert_eq!(reason(&refused), Some(Reason::Overloaded));
}

/// AD1: what a stream gives up counts where it is held.
#[tokio::test]
async fn what_arrived_can_be_handed_on() {
    let budget = Budget::new(100);
    let keep = |request: Request<Body>| async move {
        let admitted = request.extensions().get::<Admitted>().unwrap().clone();
        let body = request.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes().len(), 40);
        let mut response = Response::new(Body::empty());
        response
            .extensions_mut()
            .insert(Arc::new(Mutex::new(admitted.split())));
        Ok::<_, Infallible>(response)
    };
    let service = Admission::new(budget.clone(), None).layer(service_fn(keep));
    let mut response = service.oneshot(request("/a", 40)).await.unwrap();
    let held = response.extensions_mut().remove::<Arc<Mutex<Taken>>>();
    drop(response);
    assert!(budget.try_take(61).is_none());
    drop(held);
    assert!(budget.try_take(100).is_some());
}

/// AD2.
#[tokio::test]
async fn requests_in_flight_are_limited() {
    let done = Arc::new(Notify::new());
    let wait = {
        let done = Arc::clone(&done);
        move |_: Request<Body>| {
            let done = Arc::clone(&done);
            async move {
                done.notified().await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        }
    };
    let admission = Admission::new(Budget::new(100), None);
    let service = admission.layer(service_fn(wait));
    let ask = || service.clone().oneshot(request("/a", 0));
    let in_flight: Vec<_> = (0..SHARE).map(|_| tokio::spawn(ask())).collect();
    while admission.requests.free() > MAX_REQUESTS - SHARE {
        tokio::task::yield_now().await;
    }
    let refused = ask().await.unwrap();
    assert_eq!(reason(&refused), Some(Reason::Overloaded));
    done.notify_waiters();
    for request in in_flight {
        assert_eq!(reason(&request.await.unwrap().unwrap()), None);
    }
    assert_eq!(admission.requests.free(), MAX_REQUESTS);
}

/// AD3.
#[tokio::test]
async fn a_place_is_kept_until_the_answer_has_left_or_it_is_given_up() {
    let answer = |request: Request<Body>| async move {
        let admitted = request.extensions().get::<Admitted>().unwrap().clone();
        let body = Full::new(Bytes::from_static(b"never read"));
        let mut response = Response::new(Body::new(body));
        response.extensions_mut().insert(admitted);
        Ok::<_, Infallible>(response)
    };
    let admission = Admission::new(Budget::new(100), None);
    let service = admission.layer(service_fn(answer));
    let taken = || MAX_REQUESTS - admission.requests.free();
    for is_given_up in [false, true] {
        let request = request("/a", 0);
        let mut response = service.clone().oneshot(request).await.unwrap();
        let admitted = response.extensions_mut().remove::<Admitted>().unwrap();
        assert_eq!(taken(), 1);
        if is_given_up {
            admitted.leave();
        }
        drop(admitted);
        assert_eq!(taken(), usize::from(!is_given_up));
        drop(response);
        assert_eq!(taken(), 0);
    }
}

/// AD4.
#[tokio::test]
async fn others_find_a_place_whatever_one_peer_has_open() {
    let admission = Admission::new(Budget::new(100), None);
    let places = &admission.requests;
    let [attacker, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|ip| Peer::of(ip.into()));
    let take = || places.take(attacker);
    let taken: Vec<Place> = std::iter::from_fn(take).collect();
    assert_eq!(taken.len(), SHARE);
    assert!(places.take(other).is_some());
}

/// AD4.
#[tokio::test]
async fn a_stream_takes_a_whole_place_only_while_something_is_done_for_it() {
    let places = Places::new(2);
    let stream = || {
        let place = places.take(Peer::UNKNOWN)?;
        let admitted = Admitted::new(&Budget::new(0), Some(place));
        admitted.rest();
        Some(admitted)
    };
    let open: Vec<Admitted> = std::iter::from_fn(stream).collect();
    assert!(open.len() > 1, "{} are open", open.len());
    drop(open);

    let stream = stream().unwrap();
    let [one, two] = [(); 2].map(|()| stream.work().unwrap());
    drop(one);
    assert!(places.take(Peer::UNKNOWN).is_none(), "the other goes on");
    drop(two);
    let place = places.take(Peer::UNKNOWN).unwrap();
    let refused = stream.work().unwrap_err();
    assert_eq!(Reason::of(&refused), Some(Reason::Overloaded));
    drop(place);
    let working = stream.work().unwrap();
    stream.leave();
    assert_eq!(places.free(), 1, "something goes on");
    drop(working);
    assert_eq!(places.free(), 2);
}

#[tokio::test]
async fn bodies_say_when_they_end() {
    let service = Admission::new(Budget::new(100), None).layer(service_fn(echo));
    let mut response = service.oneshot(request("/a", 3)).await.unwrap();
    assert_eq!(response.body().size_hint().exact(), Some(3));
    assert!(!response.body().is_end_stream());
    response.body_mut().frame().await.unwrap().unwrap();
    assert!(response.body().is_end_stream());
}

//! HTTP/1.1 beside HTTP/2: JSON, and gRPC-Web for browsers.
//!
//! # Invariants
//! - WB1: a request that a browser sends for a page is refused unless the page's origin is allowed, before anything else.
//!   Pages call methods of the main service alone. So no other page reaches a server that its reader can reach.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::Either;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use serde::Deserialize;
use simshard_proto::Violations;
use tonic::body::Body;
use tonic_web::{GrpcWebLayer, GrpcWebService};
use tower::util::{Either as OptionalLayer, option_layer};
use tower::{Layer, Service};
use tower_http::cors::{Cors, CorsLayer};

use crate::ServeError;
use crate::budget::Budget;
use crate::json::{Json, JsonLayer, Refusal, is_grpc_web};
use crate::metrics::Methods;

/// The headers that clients in browsers send.
const SENT: [HeaderName; 7] = [
    AUTHORIZATION,
    CONTENT_TYPE,
    HeaderName::from_static("connect-protocol-version"),
    HeaderName::from_static("connect-timeout-ms"),
    HeaderName::from_static("grpc-timeout"),
    HeaderName::from_static("x-grpc-web"),
    HeaderName::from_static("x-user-agent"),
];

/// The headers of errors, which pages may read.
const READ: [HeaderName; 4] = [
    HeaderName::from_static("grpc-message"),
    HeaderName::from_static("grpc-status"),
    HeaderName::from_static("grpc-status-details-bin"),
    HeaderName::from_static("retry-after"),
];

/// How long browsers remember what a page may send.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What a server takes beside gRPC over HTTP/2: JSON for unary methods, and gRPC-Web.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// The origins whose pages may send requests.
    pub allowed_origins: Vec<Origin>,
}

/// A web site, as browsers write it: `https://search.example`, with a port if that is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Origin(HeaderValue);

/// Why a text is no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no origin: write it as https://search.example, in lower case, without a path and the usual port"
)]
pub struct InvalidOrigin(String);

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let invalid = || InvalidOrigin(text.to_owned());
        let uri = text.parse::<Uri>().map_err(|_| invalid())?;
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err(invalid());
        };
        let usual = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(invalid()),
        };
        let port = uri.port_u16().filter(|port| *port != usual);
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let written = format!("{scheme}://{}{port}", host.to_lowercase());
        if written != text {
            return Err(invalid());
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| invalid())
    }
}

impl TryFrom<String> for Origin {
    type Error = InvalidOrigin;

    fn try_from(text: String) -> Result<Self, InvalidOrigin> {
        text.parse()
    }
}

/// Takes what [`Web`] says.
#[derive(Clone)]
pub(super) struct WebLayer {
    allowed: Arc<Allowed>,
    /// If pages of other origins are allowed.
    cors: Option<CorsLayer>,
    json: JsonLayer,
}

/// What pages may do.
struct Allowed {
    origins: Vec<HeaderValue>,
    /// How the paths of the methods begin that they may call.
    path: String,
    metrics: Methods,
}

impl WebLayer {
    /// For the methods of an encoded `google.protobuf.FileDescriptorSet`. Pages may call those of `service`.
    pub(super) fn new(
        web: Web,
        service: &str,
        descriptors: &[u8],
        budget: &Budget,
        metrics: &Methods,
    ) -> Result<Self, ServeError> {
        let origins = web.allowed_origins.into_iter();
        let origins: Vec<HeaderValue> = origins.map(|origin| origin.0).collect();
        let cors = (!origins.is_empty()).then(|| {
            CorsLayer::new()
                .allow_origin(origins.clone())
                .allow_methods([Method::POST])
                .allow_headers(SENT)
                .expose_headers(READ)
                .max_age(REMEMBERED)
        });
        Ok(Self {
            allowed: Arc::new(Allowed {
                origins,
                path: format!("/{service}/"),
                metrics: metrics.clone(),
            }),
            cors,
            json: JsonLayer::new(descriptors, budget, metrics)?,
        })
    }
}

type JsonOrWeb<S> = Json<GrpcWebService<S>>;

impl<S> Layer<S> for WebLayer {
    type Service = CheckOrigin<OptionalLayer<Cors<JsonOrWeb<S>>, JsonOrWeb<S>>>;

    fn layer(&self, inner: S) -> Self::Service {
        let inner = self.json.layer(GrpcWebLayer::new().layer(inner));
        CheckOrigin {
            inner: option_layer(self.cors.clone()).layer(inner),
            allowed: Arc::clone(&self.allowed),
        }
    }
}

/// A service that gets from pages only what those of allowed origins may send.
#[derive(Clone)]
pub(super) struct CheckOrigin<S> {
    inner: S,
    allowed: Arc<Allowed>,
}

impl<S> Service<Request<Body>> for CheckOrigin<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self.allowed.check(&request) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(refusal) => {
                let method = self.allowed.metrics.of_path(request.uri().path());
                method.count_refusal(&refusal.status);
                let refusal = refusal.without_body(request.version());
                Either::Right(ready(Ok(refusal.into_http())))
            }
        }
    }
}

impl Allowed {
    fn check(&self, request: &Request<Body>) -> Result<(), Refusal> {
        if is_of_grpc(request) {
            return Ok(());
        }
        let headers = request.headers();
        let mut origins = headers.get_all(ORIGIN).iter();
        if !origins.all(|origin| self.origins.contains(origin)) {
            let problem =
                "is not allowed: `--allow-origin` of the router lets its pages send requests";
            return Err(forbidden(problem));
        }
        let is_of_page = headers.contains_key(ORIGIN);
        if is_of_page && !request.uri().path().starts_with(&self.path) {
            let problem = format!("may call methods below {} alone", self.path);
            return Err(forbidden(&problem));
        }
        let asks_before = is_of_page && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() == Method::OPTIONS && !asks_before {
            return Err(Refusal::of_method(request.method()));
        }
        Ok(())
    }
}

/// Whether a request is one of gRPC over HTTP/2, which no page can send. A proxy may pass the origin of a page on with it.
fn is_of_grpc(request: &Request<Body>) -> bool {
    let headers = request.headers();
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_grpc = content_type.is_some_and(|name| name.starts_with(b"application/grpc"));
    request.version() >= Version::HTTP_2 && is_grpc && !is_grpc_web(headers)
}

fn forbidden(problem: &str) -> Refusal {
    Refusal::by(StatusCode::FORBIDDEN, Violations::of("origin", problem))
}

#[cfg(test)]
mod tests {
    use simshard_proto::CORPUS_SERVICE_DESCRIPTORS;
    use simshard_runtime::observed::Observed;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::metrics::Requests;

    const FIND: &str = "/simshard.v1.CorpusService/FindAll";

    /// The answer of a server that allows some origins.
    async fn ask(allowed: &[&str], request: http::request::Builder) -> Response<Body> {
        let web = Web {
            allowed_origins: allowed.iter().map(|text| text.parse().unwrap()).collect(),
        };
        let budget = Budget::new(1 << 20);
        let requests: Requests = Observed::default().metrics();
        let methods = requests.of_server("test", CORPUS_SERVICE_DESCRIPTORS, &budget);
        let service = "simshard.v1.CorpusService";
        let layer = WebLayer::new(web, service, CORPUS_SERVICE_DESCRIPTORS, &budget, &methods);
        let reached = service_fn(|_: Request<Body>| async {
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let mut request = request.body(Body::empty()).unwrap();
        let content_type = HeaderValue::from_static("application/grpc-web+proto");
        let headers = request.headers_mut();
        headers.entry(CONTENT_TYPE).or_insert(content_type);
        layer
            .unwrap()
            .layer(reached)
            .oneshot(request)
            .await
            .unwrap()
    }

    async fn status(allowed: &[&str], request: http::request::Builder) -> u16 {
        ask(allowed, request).await.status().as_u16()
    }

    /// WB1. A site that points its name to loopback is another origin, too.
    #[tokio::test]
    async fn pages_of_other_origins_are_refused() {
        let here = "https://search.example";
        let post = || Request::post(FIND);
        assert_eq!(status(&[], post()).await, 200);
        for other in [
            "https://evil.example",
            "http://evil.example:7460",
            "http://search.example",
            "http://127.0.0.1:7460",
            "null",
            "",
        ] {
            assert_eq!(
                status(&[here], post().header(ORIGIN, other)).await,
                403,
                "{other}"
            );
            let both = post().header(ORIGIN, here).header(ORIGIN, other);
            assert_eq!(status(&[here], both).await, 403);
        }
        assert_eq!(status(&[], post().header(ORIGIN, here)).await, 403);
        let answer = ask(&[here], post().header(ORIGIN, here)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["access-control-allow-origin"], here);
    }

    /// WB1. What operators do is not for pages.
    #[tokio::test]
    async fn pages_call_the_methods_of_one_service_alone() {
        let here = "https://search.example";
        for path in [
            "/simshard.admin.v1.AdminService/DrainNode",
            "/simshard.v1.CorpusServices/FindAll",
            "/grpc.health.v1.Health/Check",
            "/",
        ] {
            let of_page = Request::post(path).header(ORIGIN, here);
            assert_eq!(status(&[here], of_page).await, 403, "{path}");
            assert_eq!(status(&[here], Request::post(path)).await, 200, "{path}");
        }
    }

    /// Proxies pass origins on.
    #[tokio::test]
    async fn clients_of_grpc_over_http_2_are_no_pages() {
        let post = || Request::post(FIND).header(ORIGIN, "https://elsewhere.example");
        let of_grpc = || post().header(CONTENT_TYPE, "application/grpc+proto");
        assert_eq!(status(&[], of_grpc().version(Version::HTTP_2)).await, 200);
        assert_eq!(status(&[], of_grpc()).await, 403);
        assert_eq!(status(&[], post().version(Version::HTTP_2)).await, 403);
    }

    /// Browsers ask before they send.
    #[tokio::test]
    async fn a_browser_learns_what_its_page_may_send() {
        let here = "https://search.example";
        let options = || Request::options(FIND).header(ORIGIN, here);
        let asked = || options().header(ACCESS_CONTROL_REQUEST_METHOD, "POST");
        let answer = ask(&[here], asked()).await;
        let headers = answer.headers();
        assert_eq!(headers["access-control-allow-origin"], here);
        assert_eq!(headers["access-control-allow-methods"], "POST");
        assert_eq!(headers["access-control-max-age"], "600");
        let sent = headers["access-control-allow-headers"].to_str().unwrap();
        assert!(sent.contains("content-type") && sent.contains("x-grpc-web"));
        assert_eq!(status(&[], asked()).await, 403);
        assert_eq!(status(&[here], options()).await, 405);
        assert_eq!(status(&[here], Request::options(FIND)).await, 405);
    }

    #[test]
    fn an_origin_is_what_browsers_write() {
        for text in [
            "https://search.example",
            "http://localhost:8080",
            "https://[::1]:8443",
            "https://search.example:80",
        ] {
            assert!(text.parse::<Origin>().is_ok(), "{text}");
        }
        for text in [
            "",
            "*",
            "null",
            "search.example",
            "https://a.example/",
            "https://A.example",
            "https://a.example:443",
            "http://a.example:80",
            "https://user@a.example",
            "ftp://a.example",
        ] {
            let invalid = text.parse::<Origin>().unwrap_err();
            assert!(invalid.to_string().contains("is no origin"), "{text}");
        }
    }
}

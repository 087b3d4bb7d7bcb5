//! HTTP/1.1 beside HTTP/2: JSON, and gRPC-Web for browsers.
//!
//! # Invariants
//! - WB1: a request that a browser sends for a page is refused before anything else, unless the page's origin is allowed. So
//!   no page reaches a server that its reader can reach.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use serde::Deserialize;
use simshard_proto::Violations;
use tonic::body::Body;
use tonic_web::{GrpcWebLayer, GrpcWebService};
use tower::util::{Either as Optional, option_layer};
use tower::{Layer, Service};
use tower_http::cors::{Cors, CorsLayer};

use crate::ServeError;
use crate::budget::Budget;
use crate::json::{Json, JsonLayer, Refusal};
use crate::metrics::Methods;

/// The headers that clients in browsers send.
const SENT: [HeaderName; 6] = [
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
#[error("{0:?} is no origin: write it as https://search.example, in lower case and without a path")]
pub struct InvalidOrigin(String);

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let invalid = || InvalidOrigin(text.to_owned());
        let uri = text.parse::<Uri>().map_err(|_| invalid())?;
        let written = uri.scheme().zip(uri.authority());
        let written = written.map(|(scheme, host)| format!("{scheme}://{host}").to_lowercase());
        if written.as_deref() != Some(text) {
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
    allowed: Arc<[HeaderValue]>,
    /// If pages of other origins are allowed.
    cors: Option<CorsLayer>,
    json: JsonLayer,
}

impl WebLayer {
    /// For the methods of an encoded `google.protobuf.FileDescriptorSet`.
    pub(super) fn new(
        web: Web,
        descriptors: &[u8],
        budget: &Budget,
        methods: &Methods,
    ) -> Result<Self, ServeError> {
        let allowed = web.allowed_origins.into_iter();
        let allowed: Vec<HeaderValue> = allowed.map(|origin| origin.0).collect();
        let cors = (!allowed.is_empty()).then(|| {
            CorsLayer::new()
                .allow_origin(allowed.clone())
                .allow_methods([Method::POST])
                .allow_headers(SENT)
                .expose_headers(READ)
        });
        Ok(Self {
            allowed: allowed.into(),
            cors,
            json: JsonLayer::new(descriptors, budget, methods)?,
        })
    }
}

type InJsonOrWeb<S> = Json<GrpcWebService<S>>;

impl<S> Layer<S> for WebLayer {
    type Service = CheckOrigin<Optional<Cors<InJsonOrWeb<S>>, InJsonOrWeb<S>>>;

    fn layer(&self, inner: S) -> Self::Service {
        let inner = self.json.layer(GrpcWebLayer::new().layer(inner));
        CheckOrigin {
            inner: option_layer(self.cors.clone()).layer(inner),
            allowed: Arc::clone(&self.allowed),
        }
    }
}

/// A service that gets no requests for pages of other origins than those allowed.
#[derive(Clone, Debug)]
pub(super) struct CheckOrigin<S> {
    inner: S,
    allowed: Arc<[HeaderValue]>,
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
        let mut origins = request.headers().get_all(ORIGIN).iter();
        if origins.all(|origin| self.allowed.contains(origin)) {
            return Either::Left(self.inner.call(request));
        }
        let problem = "is not allowed: `--allow-origin` of the router lets its pages send requests";
        let status = Violations::of("origin", problem);
        let refusal = Refusal::by(StatusCode::FORBIDDEN, status);
        Either::Right(ready(Ok(refusal.into_http())))
    }
}

#[cfg(test)]
mod tests {
    use simshard_proto::CORPUS_SERVICE_DESCRIPTORS;
    use simshard_runtime::observed::Observed;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::metrics::Requests;

    /// The answer of a server that allows some origins.
    async fn ask(allowed: &[&str], request: http::request::Builder) -> Response<Body> {
        let web = Web {
            allowed_origins: allowed.iter().map(|text| text.parse().unwrap()).collect(),
        };
        let budget = Budget::new(1 << 20);
        let requests: Requests = Observed::default().metrics();
        let methods = requests.of_server("test", CORPUS_SERVICE_DESCRIPTORS, &budget);
        let layer = WebLayer::new(web, CORPUS_SERVICE_DESCRIPTORS, &budget, &methods).unwrap();
        let reached = service_fn(|_: Request<Body>| async {
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let request = request.header(CONTENT_TYPE, "application/grpc-web+proto");
        let request = request.body(Body::empty()).unwrap();
        layer.layer(reached).oneshot(request).await.unwrap()
    }

    /// WB1. A site that points its name to loopback is another origin, too.
    #[tokio::test]
    async fn pages_of_other_origins_are_refused() {
        let here = "https://search.example";
        let post = || Request::post("/");
        assert_eq!(ask(&[], post()).await.status(), StatusCode::OK);
        for other in [
            "https://evil.example",
            "http://search.example",
            "null",
            "http://127.0.0.1:7460",
        ] {
            let answer = ask(&[here], post().header(ORIGIN, other)).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{other}");
            let both = post().header(ORIGIN, here).header(ORIGIN, other);
            assert_eq!(ask(&[here], both).await.status(), StatusCode::FORBIDDEN);
        }
        let answer = ask(&[], post().header(ORIGIN, here)).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        let answer = ask(&[here], post().header(ORIGIN, here)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["access-control-allow-origin"], here);
    }

    /// Browsers ask before they send.
    #[tokio::test]
    async fn a_browser_learns_what_its_page_may_send() {
        let here = "https://search.example";
        let asked = || Request::options("/").header(ORIGIN, here);
        let answer = ask(&[here], asked()).await;
        let headers = answer.headers();
        assert_eq!(headers["access-control-allow-origin"], here);
        assert_eq!(headers["access-control-allow-methods"], "POST");
        let sent = headers["access-control-allow-headers"].to_str().unwrap();
        assert!(sent.contains("content-type") && sent.contains("x-grpc-web"));
        assert_eq!(ask(&[], asked()).await.status(), StatusCode::FORBIDDEN);
    }

    #[test]
    fn an_origin_is_what_browsers_write() {
        for text in [
            "https://search.example",
            "http://localhost:8080",
            "https://[::1]:8443",
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
        ] {
            let invalid = text.parse::<Origin>().unwrap_err();
            assert!(invalid.to_string().contains("is no origin"), "{text}");
        }
    }
}

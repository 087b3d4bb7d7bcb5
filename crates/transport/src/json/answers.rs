//! From an answer of gRPC to one in JSON.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use simshard_proto::Reason;
use tonic::body::Body;
use tonic::{Code, Status};

use super::Refusal;
use super::messages::{self, Method};
use crate::admission::{NO_MEMORY, overloaded};
use crate::budget::Taken;

/// Bytes of an answer before it becomes JSON.
const LARGEST: usize = 1 << 20;

/// Bytes of an answer that becomes JSON whether there is memory left or not: what it tells may have been done.
const SMALL: usize = 16 << 10;

/// Bytes that the connection is handed at a time.
const PART: usize = 64 << 10;

/// The answer in JSON.
///
/// # Errors
/// What went wrong instead. Also if the answer is too large for JSON, or there is no memory left for it.
pub(super) async fn json(
    method: &Method,
    answer: Response<Body>,
    taken: Taken,
) -> Result<Response<Answer>, Refusal> {
    check_ok(answer.headers())?;
    let (mut taken, mut body) = (taken, answer.into_body());
    let framed = read(&mut body, &mut taken).await?;
    let cost = messages::bytes_of_answer(&framed);
    if framed.len() <= SMALL {
        taken.grow(cost);
    } else if !taken.may_ever_grow(cost) {
        return Err(too_large().into());
    } else if !taken.try_grow(cost) {
        return Err(overloaded(NO_MEMORY).into());
    }
    let method = method.clone();
    let json = messages::offloaded(framed.len(), move || {
        let json = method.json(&framed)?;
        drop(taken.split());
        taken.grow(json.len());
        Ok(Answer {
            json: json.into(),
            _taken: taken,
            _read: body,
        })
    });
    let mut response = Response::new(json.await?);
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

/// # Errors
/// What these headers, or trailers, say went wrong.
fn check_ok(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status),
        Some(_) | None => Ok(()),
    }
}

/// The message of an answer. All of it is read, so that the call counts as one that has ended.
async fn read(body: &mut Body, taken: &mut Taken) -> Result<Bytes, Status> {
    let (mut framed, mut is_too_large) = (BytesMut::new(), false);
    while let Some(frame) = body.frame().await {
        let data = match frame?.into_data() {
            Ok(data) => data,
            Err(frame) => {
                check_ok(frame.trailers_ref().unwrap_or(&HeaderMap::new()))?;
                continue;
            }
        };
        is_too_large |= framed.len() + data.len() > LARGEST;
        if !is_too_large {
            taken.grow(data.len());
            framed.extend_from_slice(&data);
        }
    }
    if is_too_large {
        return Err(too_large());
    }
    Ok(framed.freeze())
}

fn too_large() -> Status {
    let told = "an answer in JSON has at most 1 MiB as a message, or less where the server has little memory: send fewer \
                queries, set a limit, or use gRPC";
    Reason::AnswerTooLarge.status(told, [])
}

/// An answer that leaves. It counts until the last part of it is handed to the connection.
pub(super) struct Answer {
    json: Bytes,
    _taken: Taken,
    /// The answer of gRPC, which has been read. Its request has its place as long as it is there.
    _read: Body,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.json.is_empty() {
            return Poll::Ready(None);
        }
        let part = self.json.len().min(PART);
        Poll::Ready(Some(Ok(Frame::data(self.json.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.json.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.json.len() as u64)
    }
}

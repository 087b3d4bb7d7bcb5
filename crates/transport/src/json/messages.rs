//! Messages in JSON, as [Protobuf](https://protobuf.dev/programming-guides/json/) has it: numbers of 64 bits are strings.

use std::collections::HashMap;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost_reflect::{
    DescriptorError, DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor,
    SerializeOptions,
};
use serde_json::de::SliceRead;
use serde_json::{Deserializer, Serializer};
use simshard_proto::{Reason, Violations};
use tokio::task::spawn_blocking;
use tonic::Status;

use super::syntax::first_inexact;

/// Bytes in front of each message of gRPC: whether it is compressed, and its length.
const FRAME_HEAD: usize = 5;

/// Bytes of a message that take too long for a thread that answers others.
const LONG: usize = 16 << 10;

/// How many times its bytes an answer takes while it is written: rows are small, and each is an object.
const BYTES_OF_AN_ANSWER: usize = 64;

/// Bytes of what the parser says that are told: it repeats names and texts, however long.
const TOLD: usize = 200;

/// The methods of some services, by their paths.
pub(super) struct Methods(HashMap<String, Method>);

/// A method, and what it takes and answers.
#[derive(Clone)]
pub(super) struct Method(MethodDescriptor);

impl Methods {
    /// Those of an encoded `google.protobuf.FileDescriptorSet`.
    pub(super) fn of(descriptors: &[u8]) -> Result<Self, DescriptorError> {
        let pool = DescriptorPool::decode(descriptors)?;
        let methods = pool.services().flat_map(|service| {
            let methods: Vec<MethodDescriptor> = service.methods().collect();
            let name = service.full_name().to_owned();
            methods.into_iter().map(move |method| {
                let path = format!("/{name}/{}", method.name());
                (path, Method(method))
            })
        });
        Ok(Self(methods.collect()))
    }

    pub(super) fn of_path(&self, path: &str) -> Option<Method> {
        self.0.get(path).cloned()
    }
}

impl Method {
    /// Whether it takes or answers several messages.
    pub(super) fn is_stream(&self) -> bool {
        self.0.is_client_streaming() || self.0.is_server_streaming()
    }

    /// The frame of gRPC with what is sent to it.
    ///
    /// # Errors
    /// If the bytes are not JSON, or that of another message. Also if a number may have been rounded.
    pub(super) fn message(&self, json: &[u8]) -> Result<Bytes, Status> {
        let kind = self.0.input();
        let wrong = |problem: String| {
            let problem = format!("is no {} in JSON: {problem}", kind.name());
            Violations::of("body", problem)
        };
        let message = read(kind.clone(), json).map_err(|error| wrong(told(&error)))?;
        if let Some(number) = first_inexact(json) {
            return Err(wrong(format!(
                "{number} is not a whole number below 2^53, and others are to be strings: \"{number}\""
            )));
        }
        let length = message.encoded_len();
        let mut framed = BytesMut::with_capacity(FRAME_HEAD + length);
        framed.put_u8(0);
        // The JSON has a few megabytes at most.
        framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        framed.extend_from_slice(&message.encode_to_vec());
        Ok(framed.freeze())
    }

    /// Its answer in JSON, from the frame of one in gRPC.
    ///
    /// # Errors
    /// If the bytes are not one message of that kind.
    pub(super) fn json(&self, framed: &[u8]) -> Result<Vec<u8>, Status> {
        let no_message = |problem: String| Reason::Internal.status(problem, []);
        let Some(message) = unframed(framed) else {
            return Err(no_message("the answer is not one message".to_owned()));
        };
        let message = DynamicMessage::decode(self.0.output(), message)
            .map_err(|error| no_message(error.to_string()))?;
        let mut json = Serializer::new(Vec::new());
        let options = SerializeOptions::new().skip_default_fields(false);
        let written = message.serialize_with_options(&mut json, &options);
        written.map_err(|error| no_message(error.to_string()))?;
        Ok(json.into_inner())
    }
}

/// The only message in a frame of gRPC.
fn unframed(framed: &[u8]) -> Option<&[u8]> {
    let (head, message) = framed.split_first_chunk::<FRAME_HEAD>()?;
    let [is_compressed, length @ ..] = *head;
    let is_whole = u32::from_be_bytes(length) as usize == message.len();
    (is_compressed == 0 && is_whole).then_some(message)
}

/// What the parser says, cut short, and where.
fn told(error: &serde_json::Error) -> String {
    let said = error.to_string();
    if said.len() <= TOLD {
        return said;
    }
    let start = said.floor_char_boundary(TOLD);
    let (line, column) = (error.line(), error.column());
    format!("{}… at line {line} column {column}", &said[..start])
}

/// A message, which fills all of the JSON.
pub(super) fn read(kind: MessageDescriptor, json: &[u8]) -> serde_json::Result<DynamicMessage> {
    let mut from = Deserializer::<SliceRead<'_>>::from_slice(json);
    let message = DynamicMessage::deserialize(kind, &mut from)?;
    from.end()?;
    Ok(message)
}

/// About how many bytes an answer takes while it is written.
pub(super) const fn bytes_of_answer(framed: &[u8]) -> usize {
    framed.len() * BYTES_OF_AN_ANSWER
}

/// Runs `work` on some bytes, elsewhere if they are many. A panic is a fault of this request alone.
pub(super) async fn offloaded<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    if bytes < LONG {
        return work();
    }
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(ended) if ended.is_panic() => {
            Err(Reason::Internal.status("a fault in reading or writing JSON", []))
        }
        Err(_) => Err(Reason::Stopping.status("the server stops", [])),
    }
}

//! Messages in JSON, as [Protobuf](https://protobuf.dev/programming-guides/json/) has it: numbers of 64 bits are strings.

use std::collections::HashMap;
use std::panic::resume_unwind;

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

/// Bytes in front of each message of gRPC: whether it is compressed, and its length.
const FRAME_HEAD: usize = 5;

/// Bytes of a message that take too long for a thread that answers others.
const LONG: usize = 16 << 10;

/// Bytes that a value takes while a message is read or written, beside its own.
const BYTES_OF_A_VALUE: usize = 64;

/// Bytes that an object takes then.
const BYTES_OF_AN_OBJECT: usize = 1024;

/// How many times its bytes an answer takes while it is written: rows are small, and each is an object.
const BYTES_OF_AN_ANSWER: usize = 64;

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

    /// What is sent to it, as gRPC has it.
    ///
    /// # Errors
    /// If it is no JSON, or that of another message.
    pub(super) fn message(&self, json: &[u8]) -> Result<Bytes, Status> {
        let message = read(self.0.input(), json).map_err(|error| {
            let name = self.0.input();
            let name = name.name();
            Violations::of("the body", format!("is no {name} in JSON: {error}"))
        })?;
        let length = message.encoded_len();
        let mut framed = BytesMut::with_capacity(FRAME_HEAD + length);
        framed.put_u8(0);
        // A request in JSON is far smaller.
        framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        framed.extend_from_slice(&message.encode_to_vec());
        Ok(framed.freeze())
    }

    /// Its answer in JSON, from one of gRPC.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn json(&self, framed: &[u8]) -> Result<Vec<u8>, Status> {
        let no_message = |problem: String| Reason::Internal.status(problem, []);
        let Some(message) = framed.get(FRAME_HEAD..) else {
            return Err(no_message("the answer has no message".to_owned()));
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

fn read(kind: MessageDescriptor, json: &[u8]) -> serde_json::Result<DynamicMessage> {
    let mut from = Deserializer::<SliceRead<'_>>::from_slice(json);
    let message = DynamicMessage::deserialize(kind, &mut from)?;
    from.end()?;
    Ok(message)
}

/// About how many bytes a message takes while it is read, beside its JSON.
pub(super) fn bytes_of_json(json: &[u8]) -> usize {
    let cost = |byte: &u8| match byte {
        b',' | b'[' => BYTES_OF_A_VALUE,
        b'{' => BYTES_OF_AN_OBJECT,
        _ => 1,
    };
    json.iter().map(cost).sum()
}

/// About how many bytes an answer takes while it is written.
pub(super) const fn bytes_of_answer(framed: &[u8]) -> usize {
    framed.len() * BYTES_OF_AN_ANSWER
}

/// Runs `work` on some bytes, elsewhere if they are many. A panic goes on in the caller.
pub(super) async fn offloaded<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    if bytes < LONG {
        return work();
    }
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(Reason::Stopping.status("the server stops", [])),
        },
    }
}

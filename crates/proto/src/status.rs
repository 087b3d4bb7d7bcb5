//! A status inside a message: where one request of a stream fails, and the stream goes on.

use prost::Message;
use tonic::{Code, Status};

/// An encoded `google.rpc.Status`.
#[must_use]
pub fn status_into_bytes(status: &Status) -> Vec<u8> {
    // Ours carry their details, which are just that.
    if !status.details().is_empty() {
        return status.details().to_vec();
    }
    let plain = tonic_types::Status {
        code: status.code() as i32,
        message: status.message().to_owned(),
        details: Vec::new(),
    };
    plain.encode_to_vec()
}

/// The status of an encoded `google.rpc.Status`.
#[must_use]
pub fn status_from_bytes(bytes: Vec<u8>) -> Status {
    match tonic_types::Status::decode(&*bytes) {
        Ok(status) => {
            Status::with_details(Code::from_i32(status.code), status.message, bytes.into())
        }
        Err(error) => Status::internal(format!("a status that cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    #[test]
    fn a_status_survives_being_a_message() {
        let status = Reason::NotOwner.status("no", [("shards", "00-0f".to_owned())]);
        let back = status_from_bytes(status_into_bytes(&status));
        assert_eq!(back.code(), status.code());
        assert_eq!(back.message(), "no");
        assert_eq!(Reason::of(&back), Some(Reason::NotOwner));

        let plain = Status::unavailable("later");
        let back = status_from_bytes(status_into_bytes(&plain));
        assert_eq!((back.code(), back.message()), (Code::Unavailable, "later"));
        assert_eq!(Reason::of(&back), None);
    }

    #[test]
    fn nonsense_is_an_internal_error() {
        assert_eq!(status_from_bytes(vec![0xff]).code(), Code::Internal);
    }
}

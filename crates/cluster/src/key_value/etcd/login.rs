//! The user of etcd as which calls are made. etcd gives a token for its password, and forgets tokens: after minutes
//! without a call, when it restarts, and when a user changes.

use std::fmt;

use tokio::sync::Mutex;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::access::EtcdUser;
use super::connection::unary;
use super::wire::{AuthenticateRequest, AuthenticateResponse};

const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

/// What etcd says of a call without a token that it knows. It has done nothing then.
const UNKNOWN_TOKEN: [&str; 3] = [
    "invalid auth token",
    "user name is empty",
    "revision of auth store is old",
];

/// What etcd 3.4 says of a watch without such a token.
const DENIED: &str = "permission denied";

/// Which goes with each call.
pub(super) type Token = MetadataValue<Ascii>;

/// A user, and its token.
pub(super) struct Login {
    user: EtcdUser,
    /// Held while one is asked for, so that of many calls one does.
    token: Mutex<Option<Token>>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Login");
        shown.field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    pub(super) fn new(user: EtcdUser) -> Self {
        Self {
            user,
            token: Mutex::default(),
        }
    }

    /// The token, asked for where there is none. An etcd that does not ask for users has none.
    pub(super) async fn token(&self, channel: &Channel) -> Result<Option<Token>, Status> {
        let mut token = self.token.lock().await;
        if token.is_none() {
            *token = self.authenticate(channel).await?;
        }
        Ok(token.clone())
    }

    /// Forgets a token that etcd does not know, unless there is another one by now.
    pub(super) async fn forget(&self, unknown: Option<&Token>) {
        let mut token = self.token.lock().await;
        if token.as_ref() == unknown {
            *token = None;
        }
    }

    async fn authenticate(&self, channel: &Channel) -> Result<Option<Token>, Status> {
        let request = AuthenticateRequest {
            name: self.user.name.clone(),
            password: self.user.password.clone(),
        };
        let answer = unary(channel.clone(), AUTHENTICATE, &request, None).await;
        let AuthenticateResponse { token } = match answer {
            Err(status) if status.code() == Code::FailedPrecondition => return Ok(None),
            answer => answer?,
        };
        let token = Token::try_from(token);
        let mut token = token.map_err(|_| Status::internal("the token of etcd is not ASCII"))?;
        token.set_sensitive(true);
        Ok(Some(token))
    }
}

/// Whether a call was refused for its token.
pub(super) fn lacks_token(status: &Status) -> bool {
    UNKNOWN_TOKEN
        .iter()
        .any(|said| status.message().contains(said))
}

/// Whether a watch may have been refused for its token, by the reason that etcd gave.
pub(super) fn may_lack_token(reason: &str) -> bool {
    let mut said = UNKNOWN_TOKEN.iter().chain([&DENIED]);
    said.any(|said| reason.contains(said))
}

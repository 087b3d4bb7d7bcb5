//! Whether a service is ready: what the health service answers, and what the process shows.

use simshard_runtime::observed::Observed;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// The health of one service.
pub(super) struct Health {
    service: &'static str,
    reporter: HealthReporter,
    /// Dropped with the service, which is served no more then.
    shown: watch::Sender<bool>,
}

impl Health {
    /// Of a service that is not ready yet.
    pub(super) fn new(
        service: &'static str,
        reporter: HealthReporter,
        observed: &Observed,
    ) -> Self {
        let shown = watch::Sender::new(false);
        observed.serves(service, shown.subscribe());
        Self {
            service,
            reporter,
            shown,
        }
    }

    pub(super) async fn set(&self, is_ready: bool) {
        let status = if is_ready {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        self.reporter.set_service_status(self.service, status).await;
        self.shown.send_replace(is_ready);
    }

    /// Follows whether the service is ready, until `shutdown`. From then on it is not.
    pub(super) async fn follow(
        &self,
        mut ready: watch::Receiver<bool>,
        shutdown: &CancellationToken,
    ) {
        let follow = async {
            while ready.changed().await.is_ok() {
                let is_ready = *ready.borrow_and_update();
                self.set(is_ready).await;
            }
        };
        shutdown.run_until_cancelled(follow).await;
        shutdown.cancelled().await;
        self.set(false).await;
    }
}

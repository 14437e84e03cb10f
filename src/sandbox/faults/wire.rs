//! What the platform hands to the doors: an answer, and what happens to it on its way.

use std::time::Duration;

use crate::sandbox::platform::ApiResponse;

/// The answer to a request, and what happens to it on the wire.
pub(crate) struct ResponsePlan {
    pub answer: ApiResponse,
    pub wire: WireFaults,
}

/// What happens on the wire; by default nothing out of the ordinary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireFaults {
    /// How much later than now the answer leaves.
    pub delay: Option<Duration>,
    /// A page in the answer's place.
    pub page: Option<ErrorPage>,
    /// How the answer is lost.
    pub loss: Option<ResponseLoss>,
    /// What the door does before the next envelope of sends.
    pub port: PortBehaviour,
}

/// An HTML page with an HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorPage {
    pub status: u16,
    pub retry_after: Option<Duration>,
}

/// How an answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseLoss {
    /// The connection closes without an answer.
    Dropped,
    /// The connection closes in the middle of the answer.
    Truncated,
}

/// What the next connection finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PortBehaviour {
    /// Somebody who listens.
    #[default]
    Open,
    /// For so long nobody; connections that are kept alive are closed.
    Refuse(Duration),
    /// Somebody who closes it at once; connections that are kept alive are closed.
    Close,
}

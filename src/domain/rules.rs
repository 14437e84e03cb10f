//! What the gateway's channels accept of a rendered text.

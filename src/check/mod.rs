//! The survey: campaign, recipients and texts looked at together before anything is sent.

//! One item of the list of channels.

use std::ops::Range;

use super::{CHANNELS, key_names};
use crate::domain::Channel;
use crate::finding::did_you_mean;
use crate::manifest::yaml::{MapEntry, Node};

/// A channel with what stands under it.
pub(crate) struct ChannelItem<'n> {
    /// The channel.
    pub(crate) channel: Channel,
    /// The channel's name in the file.
    pub(crate) name_span: &'n Range<usize>,
    /// The map of its keys; nothing where a bare name stands.
    pub(crate) keys: Option<&'n Node>,
}

/// The channel that an item with an unknown name probably means.
pub(crate) fn find_meant_item(item: &Node) -> Option<ChannelItem<'_>> {
    let [MapEntry { key, key_span, value }] = item.as_entries()? else { return None };
    let channel = Channel::from_name(did_you_mean(key, key_names(CHANNELS))?)?;
    Some(ChannelItem { channel, name_span: key_span, keys: Some(value) })
}

/// The channel that an item names: `- hlr`, or a map whose one key is a channel.
pub(crate) fn parse_channel_item(item: &Node) -> Option<ChannelItem<'_>> {
    if let Some(scalar) = item.as_scalar() {
        let channel = Channel::from_name(&scalar.text)?;
        return Some(ChannelItem { channel, name_span: &item.span, keys: None });
    }
    let [MapEntry { key, key_span, value }] = item.as_entries()? else { return None };
    let channel = Channel::from_name(key)?;
    Some(ChannelItem { channel, name_span: key_span, keys: Some(value) })
}

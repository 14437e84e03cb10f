//! Frame headers and error codes of zstd, as far as findings name them (RFC 8878, section 3.1.1).

/// The largest window of zstd that decompression allows, as a power of two: 128 MiB, zstd's own default.
pub(super) const LARGEST_WINDOW_LOG: u32 = 27;

/// The first bytes of a frame.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The last three of the first four bytes of a skippable frame. The first one is 0x50 to 0x5f.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Whether a file begins with a frame of zstd. Parallel and seekable compressors put a skippable frame first.
pub(super) fn is_zstd(head: &[u8]) -> bool {
    let is_skippable = head.first().is_some_and(|first| first & 0xf0 == 0x50) && head.get(1..4) == Some(&SKIPPABLE[..]);
    head.starts_with(&FRAME) || is_skippable
}

/// The window in bytes that the frame at the beginning of a file needs.
pub(super) fn read_window(head: &[u8]) -> Option<u64> {
    let rest = head.strip_prefix(&FRAME)?;
    let (descriptor, rest) = rest.split_first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = *rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window is the content, whose size stands behind the number of the dictionary.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (length, offset) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(descriptor >> 6)];
    let size = rest.get(dictionary..dictionary + length)?;
    let size = size.iter().rev().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
    size.checked_add(offset)
}

/// Why zstd does not decompress a file that might be sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZstdError {
    /// The window is larger than [`LARGEST_WINDOW_LOG`] allows.
    Window,
    /// It was compressed with a dictionary.
    Dictionary,
    /// There is not enough memory.
    Memory,
    /// Other bytes stand where a frame should begin.
    NoFrame,
}

impl ZstdError {
    /// The reason of an error. The library gives the name of the error's code instead of the code; `name` looks up names.
    pub(super) fn from_error_name(error: &str, name: impl Fn(usize) -> &'static str) -> Option<Self> {
        // `ZSTD_ErrorCode` of zstd_errors.h, whose numbers are stable.
        let codes = [(10, Self::NoFrame), (16, Self::Window), (32, Self::Dictionary), (64, Self::Memory)];
        codes.into_iter().find(|(code, _)| error == name(0_usize.wrapping_sub(*code))).map(|(_, refusal)| refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_read_from_the_frame_header() {
        let frame = |rest: &[u8]| [&FRAME[..], rest].concat();
        for (head, expected) in [
            (frame(&[0x00, 21 << 3]), Some(2 << 30)),
            (frame(&[0x04, 17 << 3 | 4]), Some(192 << 20)),
            (frame(&[0xa0, 0, 0, 0, 0x10]), Some(256 << 20)),
            (frame(&[0x61, 9, 0, 1]), Some(512)),
            (frame(&[0x20, 7]), Some(7)),
            (frame(&[0xe0, 1, 0, 0]), None),
            (frame(&[]), None),
            (b"phone".to_vec(), None),
        ] {
            assert_eq!(read_window(&head), expected, "{head:x?}");
        }
    }
}

//! ZIP archives with parts of any length, written without holding their content in memory.

use flate2::{Compress, Compression, Crc, FlushCompress};

/// The size of the compressed block that a part repeats.
const BLOCK: usize = 1 << 20;

/// The compressed content of a part.
#[derive(Clone)]
pub(super) struct Content {
    packed: Vec<u8>,
    method: u16,
    size: u32,
    crc: u32,
}

impl Content {
    /// A short text.
    pub(super) fn of(text: &str) -> Self {
        let size = u32::try_from(text.len()).expect("short");
        let crc = checksum(text).sum();
        Self { packed: text.as_bytes().to_vec(), method: 0, size, crc }
    }

    /// A text whose middle repeats a piece for about this many MiB.
    pub(super) fn repeated(before: &str, piece: &str, mib: usize, after: &str) -> Self {
        let block = piece.repeat(BLOCK / piece.len());
        let all = before.len() + mib * block.len() + after.len();
        // Each block is compressed without a dictionary, so that its bytes can be repeated.
        let packed = [compress(before), compress(&block).repeat(mib), compress(after), vec![3, 0]].concat();
        let (mut crc, block) = (checksum(before), checksum(&block));
        (0..mib).for_each(|_| crc.combine(&block));
        crc.combine(&checksum(after));
        Self { packed, method: 8, size: u32::try_from(all).expect("less than 4 GiB"), crc: crc.sum() }
    }

    /// The same content with another declared size.
    pub(super) fn with_declared_size(self, size: u32) -> Self {
        Self { size, ..self }
    }
}

fn checksum(text: &str) -> Crc {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc
}

fn compress(text: &str) -> Vec<u8> {
    let mut packed = Vec::with_capacity(text.len() + 1024);
    let mut packing = Compress::new(Compression::best(), false);
    packing.compress_vec(text.as_bytes(), &mut packed, FlushCompress::Full).expect("packed");
    packed
}

/// An archive with these parts.
pub(super) fn zip(parts: &[(&str, Content)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in parts {
        let start = u32::try_from(bytes.len()).expect("small");
        let packed = u32::try_from(content.packed.len()).expect("small").to_le_bytes();
        let length = u16::try_from(name.len()).expect("short").to_le_bytes();
        let common = [
            &[20, 0, 0, 0][..],
            &content.method.to_le_bytes(),
            &[0, 0, 0x21, 0],
            &content.crc.to_le_bytes(),
            &packed,
            &content.size.to_le_bytes(),
            &length,
            &[0, 0],
        ]
        .concat();
        bytes.extend([b"PK\x03\x04", &common[..], name.as_bytes(), &content.packed].concat());
        let entry = [b"PK\x01\x02\x14\x00", &common[..], &[0; 10], &start.to_le_bytes(), name.as_bytes()].concat();
        directory.extend(entry);
    }
    let start = u32::try_from(bytes.len()).expect("small").to_le_bytes();
    let length = u32::try_from(directory.len()).expect("small").to_le_bytes();
    let count = u16::try_from(parts.len()).expect("few").to_le_bytes();
    let end = [&b"PK\x05\x06"[..], &[0; 4], &count, &count, &length, &start, &[0; 2]].concat();
    [bytes, directory, end].concat()
}

//! Shards of a list into the database, as one stream of binary records (PostgreSQL, `COPY`, "Binary Format").

use sqlx::postgres::PgConnection;

/// What a stream begins with: the signature, no flags, no extension of the header.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What a stream ends with.
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// The columns of a record.
const COLUMNS: i16 = 3;

/// Writes shards of copies, which are numbered from this one on.
pub(super) async fn copy_in(
    connection: &mut PgConnection,
    copies: i64,
    (first, shards): (i64, &[Vec<u8>]),
) -> sqlx::Result<()> {
    let begin = "COPY campaign.copy_shards (copies, shard, rows) FROM STDIN (FORMAT BINARY)";
    let mut stream = connection.copy_in_raw(begin).await?;
    stream.send(HEADER).await?;
    for (number, shard) in (first..).zip(shards) {
        stream.send(record_header(copies, number, shard.len())).await?;
        stream.send(shard.as_slice()).await?;
    }
    stream.send(TRAILER.as_slice()).await?;
    stream.finish().await.map(drop)
}

/// What stands before the bytes of a shard: how many columns there are, two numbers, and how many bytes there are.
fn record_header(copies: i64, number: i64, bytes: usize) -> Vec<u8> {
    let mut head = COLUMNS.to_be_bytes().to_vec();
    for value in [copies, number] {
        head.extend(8_i32.to_be_bytes());
        head.extend(value.to_be_bytes());
    }
    // A shard is far smaller than what a column can hold.
    head.extend(i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_header_has_big_endian_lengths() {
        let head = record_header(1, 258, 5);
        let expected =
            [&[0, 3][..], &[0, 0, 0, 8], &[0, 0, 0, 0, 0, 0, 0, 1], &[0, 0, 0, 8], &[0, 0, 0, 0, 0, 0, 1, 2]];
        assert_eq!(head, [expected.concat(), vec![0, 0, 0, 5]].concat());
        assert_eq!((HEADER.len(), TRAILER), (19, [255, 255]));
    }
}

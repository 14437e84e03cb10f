//! Baseline for the throughput benchmark: the same libraries in one loop on one thread.
//!
//! csv → tera → JSON → an intent with fsync → POST → rows in SQLite → CSV. The loop has no checks, no resume and no
//! reports. It shows the cost of the libraries alone.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, QueryBuilder, SqliteConnection};

const BATCH: usize = 100;
const TEXT: &str = "Hello {{ first_name }} {{ last_name }}, {{ shop }} has -20% for you until {{ until }}: https://shop.example/?c={{ code }}";

#[derive(Serialize)]
struct Operation {
    r#type: &'static str,
    id: u64,
    phone: u64,
    sms_signature: &'static str,
    sms_message: String,
}

#[derive(Serialize)]
struct Envelope<'a> {
    auth: &'static str,
    data: &'a [Operation],
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    success: bool,
    data: Sent,
}

#[derive(Deserialize)]
struct Sent {
    msg_id: u64,
    parts: u32,
}

/// Sends the list to the server.
pub(crate) fn run(list: &str, server: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(send_list(list, server));
}

async fn send_list(list: &str, server: &str) {
    let mut tera = tera::Tera::new();
    tera.add_raw_template("sms.txt", TEXT).expect("a valid template");
    let mut context = tera::Context::new();
    context.insert("shop", "Olena & Co");
    let mut rows = csv::Reader::from_path(list).expect("the list opens");
    let mut intents = File::create("intents").expect("the intents open");
    let mut results = csv::Writer::from_path("floor.csv").expect("the results open");
    let stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    let mut writer = stream.try_clone().expect("a socket");
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    let mut ledger = open_ledger().await;
    let (mut batch, mut record, mut id) = (Vec::with_capacity(BATCH), csv::StringRecord::new(), 1_u64);
    loop {
        let has_row = rows.read_record(&mut record).expect("a row of the list");
        if has_row {
            for (column, name) in ["first_name", "last_name", "until", "code"].into_iter().enumerate() {
                context.insert_value(name, tera::Value::from(&record[column + 1]));
            }
            let mut text = Vec::with_capacity(160);
            tera.render_to("sms.txt", &context, &mut text).expect("the text renders");
            let sms_message = String::from_utf8(text).expect("text");
            let phone = record[0].parse().expect("digits");
            batch.push(Operation { r#type: "sms", id, phone, sms_signature: "OlenaCo", sms_message });
            id += 1;
        }
        if batch.len() == BATCH || (!has_row && !batch.is_empty()) {
            let body = serde_json::to_vec(&Envelope { auth: "key", data: &batch }).expect("JSON");
            writeln!(intents, "{} {}", batch[0].id, batch.len()).expect("an intent");
            intents.sync_data().expect("an fsync");
            let answer = post(&mut writer, &mut reader, &body);
            store_rows(&mut ledger, &batch, &answer).await;
            for (operation, item) in batch.iter().zip(&answer.data) {
                let state = if item.success { "accepted" } else { "rejected" };
                results
                    .serialize((operation.id, operation.phone, state, item.data.msg_id, item.data.parts))
                    .expect("a row");
            }
            batch.clear();
        }
        if !has_row {
            break;
        }
    }
    results.flush().expect("the results are written");
    ledger.close().await.expect("the ledger closes");
}

async fn open_ledger() -> SqliteConnection {
    let mut connection = SqliteConnectOptions::new()
        .filename("floor.sqlite")
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .connect()
        .await
        .expect("a ledger");
    sqlx::query("CREATE TABLE rows (id INTEGER PRIMARY KEY, phone INTEGER, msg_id INTEGER, parts INTEGER)")
        .execute(&mut connection)
        .await
        .expect("a table");
    connection
}

async fn store_rows(ledger: &mut SqliteConnection, batch: &[Operation], answer: &Answer) {
    let mut query = QueryBuilder::new("INSERT INTO rows (id, phone, msg_id, parts) ");
    query.push_values(batch.iter().zip(&answer.data), |mut row, (operation, item)| {
        row.push_bind(operation.id as i64)
            .push_bind(operation.phone as i64)
            .push_bind(item.data.msg_id as i64)
            .push_bind(item.data.parts);
    });
    query.build().execute(ledger).await.expect("rows");
}

fn post(writer: &mut TcpStream, reader: &mut impl BufRead, body: &[u8]) -> Answer {
    let head = format!(
        "POST /api/json.php HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    writer.write_all(&[head.as_bytes(), body].concat()).expect("the server reads");
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).expect("the server answers");
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer).expect("the server answers");
    serde_json::from_slice(&answer).expect("an answer of the gateway")
}
